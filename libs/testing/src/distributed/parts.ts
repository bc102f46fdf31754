import { SERVICE_NAMES, type ServiceName } from '@writ/identity';

/** One replica of a service, numbered from 0: `agent-worker-1`. */
export type ReplicaName = `${ServiceName}-${number}`;

/** An end of a connection through a fault proxy in a distributed test: a replica, a server, the model or the client. */
export type PartName = ReplicaName | 'postgres' | 'nats' | 'model' | 'client';

/** A part, or a service to select all its replicas. */
export type Selector = PartName | ServiceName;

/** Number of replicas per service. */
export type ReplicaCounts = Readonly<Record<ServiceName, number>>;

/** A replica's name and its components. */
export interface ReplicaId {
  readonly name: ReplicaName;
  readonly service: ServiceName;
  readonly index: number;
}

/** Lists every replica, grouped by service. */
export function replicaIds(counts: ReplicaCounts): ReplicaId[] {
  return SERVICE_NAMES.flatMap((service) =>
    Array.from({ length: counts[service] }, (_, index): ReplicaId => {
      return { name: `${service}-${index}`, service, index };
    }),
  );
}

/** Whether a selector matches this part. */
export function selects(selector: Selector, part: PartName): boolean {
  return part === selector || part.replace(/-\d+$/, '') === selector;
}

/** Name of a service's environment variable, such as `WRIT_TOOL_GATEWAY_PORT`. */
export function variableOf(service: ServiceName, what: string): string {
  return `WRIT_${service.toUpperCase().replaceAll('-', '_')}_${what}`;
}
