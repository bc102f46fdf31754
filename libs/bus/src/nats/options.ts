import type { BusFailure } from '../bus.ts';
import type { StreamPlan } from '../hook-streams.ts';

/** Options of a bus on NATS. */
export interface NatsBusOptions {
  /** `host:port`, `nats://` or `tls://` URLs; one of them is used. */
  readonly servers: readonly string[];
  /** Name of the connection, which the NATS server shows to its operator. */
  readonly name: string;
  /** Absent if the server requires none. */
  readonly credentials?: { readonly user: string; readonly password: string };
  /**
   * PEM files; without them a `tls://` server is verified with the certificate authorities that Node.js trusts by
   * default.
   */
  readonly tls?: {
    readonly caFile?: string;
    readonly certFile?: string;
    readonly keyFile?: string;
  };
  /** Receives every handler and connection error; must not throw. */
  readonly onError: (error: unknown, failure: Partial<BusFailure>) => void;
  /** Streams of durable messages; default: those of all hook events. */
  readonly streams?: readonly StreamPlan[];
  /**
   * Whether to create streams and consumers of observers that do not exist, and to add missing subjects to existing
   * streams; default true. If false, publishing fails until another service has created the streams.
   */
  readonly createsStreams?: boolean;
  /**
   * Maximum size of a created stream in bytes; default 256 MiB. A full stream rejects messages; a full stream for
   * observers deletes its oldest messages.
   */
  readonly streamBytes?: number;
  /** Replicas of a created stream in a cluster; default 1. */
  readonly replicas?: number;
  /**
   * Further settings of a created stream by their JetStream names. Settings that the server does not support are
   * rejected, because it would ignore them silently.
   */
  readonly streamConfig?: Readonly<Record<string, string | number | boolean>>;
  /**
   * Durable consumers that must exist before messages are accepted: a stream keeps a message until every consumer has
   * acknowledged it, so a stream without consumers does not store messages.
   */
  readonly requiredConsumers?: readonly string[];
  /** Maximum wait for the server at the start, ms; default 5 000. */
  readonly startTimeoutMs?: number;
  /** Timeout of a request to the server, ms; default 5 000. */
  readonly requestTimeoutMs?: number;
  /** Time limit of a durable handler for one message, ms; default 30 000. */
  readonly handlerTimeoutMs?: number;
  /**
   * Acknowledgement timeout of created consumers, ms; default 5 000. The bus extends it while a handler runs. When it
   * expires, the server redelivers the message to any subscriber.
   */
  readonly ackWaitMs?: number;
  /** Upper bound of the first retry delay, ms, which doubles with each attempt; default 100. */
  readonly retryBaseMs?: number;
  /** Upper bound of any retry delay, ms; default 5 000. */
  readonly retryMaxMs?: number;
}

/** The options with their defaults. */
export type NatsSettings = Required<Omit<NatsBusOptions, 'credentials' | 'tls'>> &
  Pick<NatsBusOptions, 'credentials' | 'tls'>;
