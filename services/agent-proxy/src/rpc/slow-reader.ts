import type { WebResponse } from '@writ/rpc';

/**
 * Closes the connection of a client that accepts nothing of what it is sent for `limitMs` milliseconds: a request with an
 * answer that is never read would count as in progress, and its run as used, permanently (BD-1).
 */
export function closeSlowReader(response: WebResponse, limitMs: number): void {
  response.setTimeout(limitMs, () => {
    // An answer of which nothing is unread only takes long.
    if (response.writableLength > 0) response.destroy();
  });
}
