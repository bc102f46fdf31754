import { SERVICE_NAMES, type ServiceName } from '@writ/identity';

/** One replica of a service, numbered from 0: `agent-worker-1`. */
export type ReplicaName = `${ServiceName}-${number}`;

/** Everything that a wire of a distributed platform can begin or end at. */
export type PartName = ReplicaName | 'postgres' | 'nats' | 'model' | 'client';

/** A part, or a service for all its replicas. */
export type Selector = PartName | ServiceName;

/** How many replicas each service has. */
export type ReplicaCounts = Readonly<Record<ServiceName, number>>;

/** A replica's name and what it is made of. */
export interface ReplicaId {
  readonly name: ReplicaName;
  readonly service: ServiceName;
  readonly index: number;
}

/** Every replica, service by service. */
export function replicaIds(counts: ReplicaCounts): ReplicaId[] {
  return SERVICE_NAMES.flatMap((service) =>
    Array.from({ length: counts[service] }, (_, index): ReplicaId => {
      return { name: `${service}-${index}`, service, index };
    }),
  );
}

/** Whether a selector means this part. */
export function selects(selector: Selector, part: PartName): boolean {
  return part === selector || part.replace(/-\d+$/, '') === selector;
}

/** A variable of a service: `WRIT_TOOL_GATEWAY_PORT`. */
export function variableOf(service: ServiceName, what: string): string {
  return `WRIT_${service.toUpperCase().replaceAll('-', '_')}_${what}`;
}
