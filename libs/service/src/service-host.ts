import type { Bus } from '@writ/bus';
import type { Signer, Verifier } from '@writ/identity';
import type { Clock, PeerClocks } from '@writ/kernel';
import type { Route, RpcLimits, RpcServer } from '@writ/rpc';
import type {
  CommitObserver,
  OutboxDatabase,
  OutboxRelay,
  RecoveryOrder,
  Store,
  StoreLocation,
  StoreTransaction,
} from '@writ/store';
import type { Telemetry } from '@writ/telemetry';
import type { ServiceParts } from './service.ts';

/** The settings that defineService needs of every service. */
export interface ServiceConfig {
  readonly host: string;
  readonly port: number;
  /** Directory of keys and state. */
  readonly dataDir: string;
  readonly keyRotationMs?: number | undefined;
  /** Tolerated difference from the clocks of other services, ms; default 60,000. */
  readonly clockLeewayMs?: number | undefined;
  /**
   * Time after the start during which a service with fewer than two peers does not rely on its clock, ms; default
   * 30,000.
   */
  readonly clockAloneMs?: number | undefined;
  /** Maximum wait for in-flight calls at shutdown, ms. */
  readonly drainMs: number;
  /** Location of the database; omitted for a service without one. */
  readonly store?: StoreLocation;
}

/** Options of {@link ServiceHost.openStore}. */
export interface OpenOptions<DB> {
  /** `flushIntervalMs` of the relay, if it is not the default. */
  readonly flushIntervalMs?: number;
  /**
   * Runs in the transaction in which a service accepts a database that went back in time (BD-4); the service must not
   * act before the halt named in the recovery order is in force.
   */
  readonly onRecovery?: (trx: StoreTransaction<DB>, order: RecoveryOrder) => Promise<void>;
}

/** The argument of a service's `open` function: the parts of the process and the resources that every service opens. */
export interface ServiceHost<C, P extends ServiceParts = ServiceParts> {
  readonly config: C;
  readonly parts: P;
  readonly telemetry: Telemetry;
  readonly bus: Bus;
  readonly clock: Clock;
  readonly signer: Signer;
  readonly verifier: Verifier;
  /** The clocks of the other services, as observed by the clients and the listener of this service. */
  readonly peerClocks: PeerClocks;
  /**
   * Whether the own clock differs too much from the clocks of the majority of the peers. Work that is due at a certain
   * time, such as expiry, must then wait until the clock is corrected (BD-3).
   */
  readonly isClockSkewed: () => boolean;
  /**
   * The time for data that other replicas act on (BD-3): the own clock, or the clock of the majority of the peers while
   * the own clock is skewed.
   */
  readonly sharedNow: () => Date;
  /**
   * Whether the own clock is not skewed and has been compared with at least two peers or, with fewer peers,
   * `clockAloneMs` have passed since the start. Audit checkpoints are signed, and published rows of the outbox are
   * deleted, only while this is true (BD-3).
   */
  readonly isClockConfirmed: () => boolean;
  /** Publishes the events of the outbox at the next flush (`wake`) or at once (`flushSoon`). */
  readonly relay: Pick<OutboxRelay, 'wake' | 'flushSoon'>;
  /**
   * Opens the store, creates the relay of its outbox and reports commits and backlog. Keeps the store marker up to date
   * if one is configured.
   */
  openStore<DB extends OutboxDatabase, S extends Store<DB>>(
    open: (observer: CommitObserver | undefined) => Promise<S & Store<DB>>,
    options?: OpenOptions<DB>,
  ): Promise<S>;
  /**
   * Binds the listener for services; it serves after `start()`.
   * @throws UnavailableError PORT_IN_USE naming the setting, LISTEN_FAILED; PreconditionError CLEARTEXT_NOT_ALLOWED;
   *   InternalError CALLER_RULE_MISSING
   */
  listen(
    routes: readonly Route[],
    options?: { readonly enforceSlotGrants?: boolean; readonly limits?: RpcLimits },
  ): Promise<RpcServer>;
  /**
   * Registers a function that closes a resource after the service has stopped or failed to start. The functions run in
   * reverse order of registration.
   */
  defer(close: () => unknown): void;
}
