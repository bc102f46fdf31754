import type { ModelEntry } from '../domain/catalog/catalog.ts';
import type { NativeChat } from '../domain/chat/chat.ts';
import { type FreeAnswer, sendFreeRequest } from './free-request.ts';
import { providerHeaders } from './provider-headers.ts';

/** A request whose tokens the provider counts. */
export interface CountRequest {
  readonly model: ModelEntry;
  readonly apiKey: string | undefined;
  readonly native: NativeChat;
  readonly signal: AbortSignal;
}

/**
 * Returns the answer of the provider to a request for a token count, which is free. Errors of the provider are
 * returned, not thrown.
 */
export async function countAtProvider(request: CountRequest): Promise<FreeAnswer> {
  const { model, native, signal } = request;
  const init = {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...providerHeaders(request) },
    body: JSON.stringify({ ...native.body, model: model.providerModel }),
  };
  return await sendFreeRequest({ model, path: '/messages/count_tokens', init, signal });
}
