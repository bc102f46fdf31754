import type { UniversalServerRequest } from '@connectrpc/connect/protocol';
import { universalRequestFromNodeRequest } from '@connectrpc/connect-node';
import type { InTurns } from '../calls/in-turns.ts';
import type { WebRequest, WebResponse } from './web.ts';

/**
 * Converts a request for Connect. When the client disconnects, its signal aborts and its content fails in turns with the other
 * requests of the connection, which can be a thousand (BD-2).
 */
export function universalRequest(
  request: WebRequest,
  response: WebResponse,
  disconnections: InTurns,
): UniversalServerRequest {
  const universal = universalRequestFromNodeRequest(request, response, undefined, undefined);
  const { signal } = universal;
  const stop = new AbortController();
  const onAbort = (): void => disconnections.add(() => stop.abort(signal.reason));
  signal.addEventListener('abort', onAbort, { once: true });
  return { ...universal, body: contentOf(request, disconnections), signal: stop.signal };
}

async function* contentOf(
  request: WebRequest,
  disconnections: InTurns,
): AsyncGenerator<Uint8Array, void> {
  try {
    yield* request;
  } catch (error) {
    await new Promise<void>((resolve) => disconnections.add(resolve));
    throw error;
  }
}
