/**
 * How much one server accepts; over a limit of calls or messages the caller gets RESOURCE_EXHAUSTED,
 * over one of connections the connection ends.
 */
export interface RpcLimits {
  /** Largest request or response message, bytes. Default 4 MiB. */
  readonly maxMessageBytes?: number;
  /** Most calls under way on the whole server. Default 10,000. */
  readonly maxConcurrentCalls?: number;
  /** Most streams that one connection may have open; a client queues further ones. Default 1,000. */
  readonly maxConcurrentStreams?: number;
  /** Most memory that one HTTP/2 connection may hold, MB. Default 64. */
  readonly maxSessionMemoryMb?: number;
  /** Longest a unary call may take whatever its client allows, ms. Default 60,000. Streams have none. */
  readonly maxUnaryMs?: number;
  /** Most calls under way that pass no gate: health and reflection. Default 1,000. */
  readonly maxOpenCalls?: number;
  /** Most connections to the port; default 10,000. */
  readonly maxConnections?: number;
  /** A connection without calls is closed after so long, ms. Default 5 minutes. */
  readonly connectionIdleMs?: number;
  /** How often the other end of a connection must show that it hears, ms. Default 30,000. */
  readonly connectionPingMs?: number;
}

const DEFAULTS: Required<RpcLimits> = {
  maxMessageBytes: 4 * 1024 * 1024,
  maxConcurrentCalls: 10_000,
  maxConcurrentStreams: 1_000,
  maxSessionMemoryMb: 64,
  maxUnaryMs: 60_000,
  maxOpenCalls: 1_000,
  maxConnections: 10_000,
  connectionIdleMs: 300_000,
  connectionPingMs: 30_000,
};

/** `limits` with the defaults filled in. */
export function withDefaults(limits: RpcLimits = {}): Required<RpcLimits> {
  return { ...DEFAULTS, ...limits };
}

/**
 * Longest time limit, ms: 24 days. A timer fires at once above 2³¹ ms, and so does the deadline of a
 * grpc-js server, once its client has rounded the limit up to whole seconds.
 */
export const MAX_TIMER_MS = 24 * 24 * 60 * 60 * 1000;

/**
 * How fast a client may cancel streams on one connection before the connection is taken for an
 * attack and closed. Node's own limit (1,000, then 33 a second) is met when a large run is halted.
 */
export const STREAM_RESETS = { streamResetBurst: 100_000, streamResetRate: 10_000 } as const;
