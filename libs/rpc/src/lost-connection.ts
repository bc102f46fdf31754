import { status } from '@grpc/grpc-js';

/** What Node says when a connection goes away or cannot be made. */
const LOST: ReadonlySet<unknown> = new Set([
  'EPIPE',
  'ECONNRESET',
  'ECONNREFUSED',
  'ECONNABORTED',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ETIMEDOUT',
]);

/** Whether an error, or what caused it, says that a connection was lost: Connect takes some for a fault of the peer. */
export function isLostConnection(error: unknown): boolean {
  const seen = new Set<unknown>();
  for (let cause = error; cause instanceof Error && !seen.has(cause); cause = cause.cause) {
    if ('code' in cause && LOST.has(cause.code)) return true;
    seen.add(cause);
  }
  return false;
}

/** What grpc-js says of a call whose stream ended, or could not begin, without anybody's status. */
const LOST_STREAM = /^(Received RST_STREAM with code|Failed to start HTTP\/2 stream)/;

/**
 * Whether grpc-js tells of a stream that was lost with its connection, which it calls INTERNAL unless the
 * connection ended in one of two ways: with a broken pipe, or between two frames, it is no less lost.
 */
export function isLostStream({
  code,
  details,
}: {
  readonly code: number;
  readonly details: string;
}): boolean {
  return code === status.INTERNAL && LOST_STREAM.test(details);
}
