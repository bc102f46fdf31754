import { markAuthenticated, type WebResponse } from '@writ/rpc/edge';
import { type Authorized, beginRequest, endRequest } from '../app/access/authorize.ts';
import type { RequestInProgress } from '../app/agent/requests-in-progress.ts';
import type { ProxyContext } from '../context.ts';

/** The reason with which a request is aborted when its client disconnects. */
export class DisconnectError extends Error {
  override readonly name = 'DisconnectError';

  constructor() {
    super('The client disconnected.');
  }
}

/**
 * Serves a request of an agent and counts it as in progress until it ends. The request is aborted when the client
 * disconnects before it has received the answer, or does not read the answer.
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
    if (!response.writableEnded) open.abort(new DisconnectError());
  });
  try {
    return await work(open);
  } finally {
    await endRequest(context, authorized, open);
  }
}

/**
 * Closes the connection of a client that accepts no data for `limitMs` milliseconds. Otherwise, a request whose answer
 * is never read would stay in progress and keep its run active permanently (BD-1).
 */
export function closeSlowReader(response: WebResponse, limitMs: number): void {
  response.setTimeout(limitMs, () => {
    // When no written data is pending, the server is slow and not the client.
    if (response.writableLength > 0) response.destroy();
  });
}
