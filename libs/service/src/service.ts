import type { Bus } from '@writ/bus';
import type { ServiceName, ServiceTls } from '@writ/identity';
import type { Clock } from '@writ/kernel';
import type { Loopback } from '@writ/rpc';
import type { Telemetry } from '@writ/telemetry';

/** What a service shares with the process that it runs in. */
export interface ServiceParts {
  readonly telemetry: Telemetry;
  readonly bus: Bus;
  /** Default: the system's. */
  readonly clock?: Clock;
  /** `host:port` of a service; asked when it is first called. */
  readonly addressOf: (service: ServiceName) => string;
  /** The certificate for calls between services; left out, they are in cleartext. */
  readonly tls?: ServiceTls | undefined;
  /** Where the port for services may speak cleartext; default `loopback`. */
  readonly cleartext?: 'loopback' | 'anywhere' | undefined;
  /** The servers of the process, which call each other without HTTP/2 (SYS-5). */
  readonly loopback?: Loopback | undefined;
}

/** What all five services are to whoever runs them. */
export interface Service {
  /** `host:port` where services call. */
  readonly address: string;
  /** `host:port` where clients call, for a service that has such a door. */
  readonly edgeAddress?: string;
  /** Durable commits since the start that a request waited for. */
  readonly commits: number;
  /** Begins to serve and to do its background work. */
  start(): Promise<void>;
  /** Takes no new call, lets those under way end, hands on what is recorded, and closes. Idempotent. */
  stop(): Promise<void>;
}
