import type { ServerHttp2Session, ServerHttp2Stream } from 'node:http2';
import { type ContextKey, createContextKey, createContextValues } from '@connectrpc/connect';
import type { UniversalServerRequest } from '@connectrpc/connect/protocol';
import { universalRequestFromNodeRequest } from '@connectrpc/connect-node';
import type { PacedQueue } from '../calls/paced-queue.ts';
import { raiseStreamLimit } from '../server/stream-limit.ts';
import type { WebRequest, WebResponse } from './web.ts';

/** Context key of the HTTP request of a Connect call. */
export const requestKey: ContextKey<WebRequest | undefined> = createContextKey<
  WebRequest | undefined
>(undefined);

/**
 * Raises the limit of streams of the HTTP/2 connection of an authenticated request. A `web` hook that authenticates
 * requests must call this function.
 */
export function markAuthenticated(exchange: WebRequest | WebResponse | undefined): void {
  const { stream } = (exchange ?? {}) as { readonly stream?: Partial<ServerHttp2Stream> };
  raiseStreamLimit(stream?.session as ServerHttp2Session | undefined);
}

/**
 * Converts a request for Connect. When the client disconnects, the requests of the connection are aborted through
 * `disconnections`, a few per turn of the event loop, because there can be a thousand (BD-2).
 */
export function universalRequest(
  request: WebRequest,
  response: WebResponse,
  disconnections: PacedQueue,
): UniversalServerRequest {
  const universal = universalRequestFromNodeRequest(request, response, undefined, undefined);
  const { signal } = universal;
  const stop = new AbortController();
  const onAbort = (): void => disconnections.add(() => stop.abort(signal.reason));
  signal.addEventListener('abort', onAbort, { once: true });
  const contextValues = createContextValues().set(requestKey, request);
  const body = contentOf(request, disconnections);
  return { ...universal, body, signal: stop.signal, contextValues };
}

async function* contentOf(
  request: WebRequest,
  disconnections: PacedQueue,
): AsyncGenerator<Uint8Array, void> {
  try {
    yield* request;
  } catch (error) {
    await new Promise<void>((resolve) => disconnections.add(resolve));
    throw error;
  }
}
