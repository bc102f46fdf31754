import { markAuthenticated, type WebResponse } from '@writ/rpc';
import { type Authorized, beginRequest, endRequest } from '../app/access/authorize.ts';
import type { RequestInProgress } from '../app/agent/requests-in-progress.ts';
import type { ProxyContext } from '../context.ts';

/**
 * Serves a request of an agent, which counts as in progress meanwhile. A client that disconnects before it has its
 * answer aborts it, as does one that does not read its answer.
 * @throws OverloadedError TOO_MANY_REQUESTS; what `work` throws
 */
export async function serveUntilDisconnect<T>(
  context: ProxyContext,
  authorized: Authorized,
  response: WebResponse,
  work: (open: RequestInProgress) => Promise<T>,
): Promise<T> {
  markAuthenticated(response);
  const open = beginRequest(context, authorized);
  closeSlowReader(response, context.config.slowReaderMs);
  response.once('close', () => {
    if (!response.writableEnded) open.abort(new Error('the client disconnected'));
  });
  try {
    return await work(open);
  } finally {
    await endRequest(context, authorized, open);
  }
}

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
