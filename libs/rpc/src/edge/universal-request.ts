import type { UniversalServerRequest } from '@connectrpc/connect/protocol';
import { universalRequestFromNodeRequest } from '@connectrpc/connect-node';
import type { InTurns } from '../calls/in-turns.ts';
import type { WebRequest, WebResponse } from './web.ts';

/**
 * Returns the request as Connect takes it, whose signal and content fail in turns with those of other requests when the
 * client disconnects: a connection can close with a thousand of them (BD-2).
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
