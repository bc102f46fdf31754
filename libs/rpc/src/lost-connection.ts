import { status } from '@grpc/grpc-js';

/** Node error codes of a lost or failed connection. */
const LOST: ReadonlySet<unknown> = new Set([
  'EPIPE',
  'ECONNRESET',
  'ECONNREFUSED',
  'ECONNABORTED',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ETIMEDOUT',
]);

/** Whether `error` or one of its causes is a lost connection; Connect reports some of them as INTERNAL. */
export function isLostConnection(error: unknown): boolean {
  const seen = new Set<unknown>();
  for (let cause = error; cause instanceof Error && !seen.has(cause); cause = cause.cause) {
    if ('code' in cause && LOST.has(cause.code)) return true;
    seen.add(cause);
  }
  return false;
}

/** Messages of grpc-js for a stream that ended, or failed to start, without a status. */
const LOST_STREAM = /^(Received RST_STREAM with code|Failed to start HTTP\/2 stream)/;

/**
 * Whether an error of grpc-js means a stream lost with its connection. grpc-js reports INTERNAL when
 * the connection ended with a broken pipe or between two frames.
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
