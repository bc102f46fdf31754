/**
 * The limits of one server. Calls and messages over a limit fail with RESOURCE_EXHAUSTED, connections
 * over a limit are closed.
 */
export interface RpcLimits {
  /** Maximum size of a request or response message, bytes. Default 4 MiB. */
  readonly maxMessageBytes?: number;
  /** Maximum calls in flight on the server, excluding reserved methods, health and reflection. Default 10,000. */
  readonly maxConcurrentCalls?: number;
  /** Maximum calls in flight of all people and API keys of one tenant, excluding reserved methods. Default 5,000. */
  readonly maxCallsPerTenant?: number;
  /** Maximum calls in flight of one person or API key, excluding reserved methods. Default 4,000. */
  readonly maxCallsPerPerson?: number;
  /** Maximum calls in flight of all reserved methods, see `reserved`. Default 500. */
  readonly maxReservedCalls?: number;
  /** Maximum open streams per connection; the client queues further streams. Default 1,000. */
  readonly maxConcurrentStreams?: number;
  /** Maximum open streams per connection on which no call has been authenticated yet. Default 4. */
  readonly maxAnonymousStreams?: number;
  /** Maximum memory per HTTP/2 connection, MB. Default 64. */
  readonly maxSessionMemoryMb?: number;
  /**
   * Maximum duration of a unary call whatever its deadline, and of reading the request of a stream, ms.
   * Default 60,000.
   */
  readonly maxUnaryMs?: number;
  /**
   * Maximum unauthenticated calls in flight (health and reflection), of which streams may use nine tenths. Default
   * 1,000.
   */
  readonly maxOpenCalls?: number;
  /** Maximum connections to the port. Near the limit, connections that receive no data are closed. Default 10,000. */
  readonly maxConnections?: number;
  /** Idle timeout of a connection without calls, ms. Default 5 minutes. */
  readonly connectionIdleMs?: number;
  /** Interval and timeout of keepalive pings, ms. Default 30,000. */
  readonly connectionPingMs?: number;
}

const DEFAULTS: Required<RpcLimits> = {
  maxMessageBytes: 4 * 1024 * 1024,
  maxConcurrentCalls: 10_000,
  maxCallsPerTenant: 5_000,
  maxCallsPerPerson: 4_000,
  maxReservedCalls: 500,
  maxConcurrentStreams: 1_000,
  maxAnonymousStreams: 4,
  maxSessionMemoryMb: 64,
  maxUnaryMs: 60_000,
  maxOpenCalls: 1_000,
  maxConnections: 10_000,
  connectionIdleMs: 300_000,
  connectionPingMs: 30_000,
};

/** Returns `limits` with the defaults applied. */
export function withDefaults(limits: RpcLimits = {}): Required<RpcLimits> {
  return { ...DEFAULTS, ...limits };
}

/**
 * Maximum timeout, ms: 24 days. A Node timer with a delay above 2³¹ ms fires at once. The margin allows for grpc-js
 * clients, which round the timeout up to whole seconds before the server starts its timer.
 */
export const MAX_TIMER_MS = 24 * 24 * 60 * 60 * 1000;

/**
 * Rate limit of stream resets per connection between services, above which Node treats the connection as an attack
 * and closes it. Halting a large run exceeds Node's default (1,000, then 33 per second), which public ports keep.
 */
export const STREAM_RESETS = { streamResetBurst: 100_000, streamResetRate: 10_000 } as const;
