import type { Bus } from '@writ/bus';
import type { ServiceName, ServiceTls, WorkerPool } from '@writ/identity';
import type { Clock } from '@writ/kernel';
import type { Loopback } from '@writ/rpc';
import type { Telemetry } from '@writ/telemetry';

/** The parts of a process that its services share. */
export interface ServiceParts {
  readonly telemetry: Telemetry;
  readonly bus: Bus;
  /** Default: the system clock. */
  readonly clock?: Clock;
  /**
   * `host:port` of a service, or a list for its replicas; called whenever a client or a key fetch needs the address.
   * Throws while the address is unknown.
   */
  readonly addressOf: (service: ServiceName) => string;
  /** Worker pools that are dedicated to some tenants (SYS-6); default none. */
  readonly workerPools?: readonly WorkerPool[] | undefined;
  /** The certificate for calls between services; absent for cleartext. */
  readonly tls?: ServiceTls | undefined;
  /** Where the internal listener may accept cleartext; default `loopback`. */
  readonly cleartext?: 'loopback' | 'anywhere' | undefined;
  /** Registry of the servers of the process, so that its services call each other without HTTP/2 (SYS-5). */
  readonly loopback?: Loopback | undefined;
}

/** A service that is open, running or stopped. */
export interface Service {
  /** `host:port` of the listener for services. */
  readonly address: string;
  /** `host:port` of the listener for clients, if there is one. */
  readonly edgeAddress?: string;
  /** Number of durable commits since the start, excluding commits that contain only background work. */
  readonly commits: number;
  /** Starts serving and background work. */
  start(): Promise<void>;
  /** Rejects new calls, drains in-flight ones, flushes the outbox and closes. Idempotent. */
  stop(): Promise<void>;
}
