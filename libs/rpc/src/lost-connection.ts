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
