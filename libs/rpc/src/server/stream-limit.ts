import type { ServerHttp2Session } from 'node:http2';

/** The limits of a connection before and after its first authenticated call. */
interface StreamLimits {
  readonly maxAnonymousStreams: number;
  readonly maxConcurrentStreams: number;
}

/**
 * The stream limit that each connection gets after its first authenticated call; connections are removed when the limit
 * is raised.
 */
const waiting = new WeakMap<object, number>();

/**
 * Returns the initial stream limit of a connection. One turn of the event loop creates the streams of all
 * connections that have data, so a client without credentials may open only a few on each (BD-2).
 */
export function initialStreams({
  maxAnonymousStreams,
  maxConcurrentStreams,
}: StreamLimits): number {
  return Math.min(maxAnonymousStreams, maxConcurrentStreams);
}

/**
 * Registers a new connection, whose stream limit is raised to `maxConcurrentStreams` once a call on it is
 * authenticated.
 */
export function limitStreams(
  session: ServerHttp2Session,
  { maxConcurrentStreams }: StreamLimits,
): void {
  waiting.set(session, maxConcurrentStreams);
}

/** Raises the limit of streams of a connection on which a call was authenticated. Has no effect the second time. */
export function raiseStreamLimit(session: ServerHttp2Session | undefined): void {
  if (session === undefined) return;
  const maxConcurrentStreams = waiting.get(session);
  if (maxConcurrentStreams === undefined) return;
  waiting.delete(session);
  if (!session.closed && !session.destroyed) session.settings({ maxConcurrentStreams });
}
