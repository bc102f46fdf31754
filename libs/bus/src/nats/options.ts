import type { StreamPlan } from '../hook-streams.ts';
import type { BusFailure } from '../in-process-bus.ts';

/** How a bus over NATS works. */
export interface NatsBusOptions {
  /** `host:port` or `nats://` and `tls://` URLs; any of them will do. */
  readonly servers: readonly string[];
  /** What the server's operator sees this connection as. */
  readonly name: string;
  /** Without it the server has to take anybody. */
  readonly credentials?: { readonly user: string; readonly password: string };
  /** Files in PEM; without them a `tls://` server is held against the system's authorities. */
  readonly tls?: {
    readonly caFile?: string;
    readonly certFile?: string;
    readonly keyFile?: string;
  };
  /** Told of every handler that failed, and of every trouble with the server; must not throw. */
  readonly onError: (error: unknown, failure: Partial<BusFailure>) => void;
  /** What durable messages are kept in; default the streams of all hook events. */
  readonly streams?: readonly StreamPlan[];
  /**
   * Whether these credentials create streams that are not there; default true. Otherwise nothing is
   * taken until somebody else has.
   */
  readonly createsStreams?: boolean;
  /** Bytes that a stream which is created may keep before publishing fails; default 256 MiB. */
  readonly streamBytes?: number;
  /** Copies of a stream in a cluster, of one that is created; default 1. */
  readonly replicas?: number;
  /**
   * More settings of a stream that is created, by their JetStream names. One that the server does not
   * know is refused, since it would be ignored silently.
   */
  readonly streamConfig?: Readonly<Record<string, string | number | boolean>>;
  /**
   * Durable consumers that must be there before anything is taken: a stream keeps a message until
   * every consumer has taken it, and so not at all when there is none yet.
   */
  readonly requiredConsumers?: readonly string[];
  /** Milliseconds to wait for the server at the start before going on without it; default 5 000. */
  readonly startTimeoutMs?: number;
  /** Milliseconds that the server may take over an answer; default 5 000. */
  readonly requestTimeoutMs?: number;
  /** Milliseconds that a durable handler may take over one message; default 30 000. */
  readonly handlerTimeoutMs?: number;
  /** Milliseconds after which a message of a consumer that gives no sign of life goes to another; default 5 000. */
  readonly ackWaitMs?: number;
  /** Milliseconds until the first new try of anything, doubling from there; default 100. */
  readonly retryBaseMs?: number;
  /** Milliseconds that any new try waits at most; default 5 000. */
  readonly retryMaxMs?: number;
}

/** The options with their defaults. */
export type NatsSettings = Required<Omit<NatsBusOptions, 'credentials' | 'tls'>> &
  Pick<NatsBusOptions, 'credentials' | 'tls'>;
