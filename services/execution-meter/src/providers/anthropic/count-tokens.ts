import { isJsonObject, type JsonObject, type JsonValue } from '@writ/kernel';
import type { ModelEntry } from '../../domain/catalog/catalog.ts';
import type { NativeChat } from '../../domain/chat/chat.ts';
import { type AttemptFailure, isRecoverableStatus } from '../../domain/chat/failure.ts';
import { boundedFetch } from '../openai/bounded-fetch.ts';
import { providerHeaders } from '../provider-headers.ts';

/** A request whose tokens the provider counts. */
export interface CountRequest {
  readonly model: ModelEntry;
  readonly apiKey: string | undefined;
  readonly native: NativeChat;
  readonly signal: AbortSignal;
}

/** Asks a provider how many tokens a request has, which is free. Never throws for errors of the provider. */
export async function countAtProvider(
  request: CountRequest,
): Promise<{ readonly answer: JsonObject } | { readonly failure: AttemptFailure }> {
  const { model, native, signal } = request;
  const timeout = AbortSignal.timeout(model.timeoutMs);
  try {
    const response = await boundedFetch(`${model.baseUrl}/messages/count_tokens`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...providerHeaders(request) },
      body: JSON.stringify({ ...native.body, model: model.providerModel }),
      signal: AbortSignal.any([signal, timeout]),
    });
    if (!response.ok) return { failure: failed(response.status) };
    const answer = (await response.json()) as JsonValue;
    return isJsonObject(answer) ? { answer } : { failure: failed('bad_response') };
  } catch {
    return { failure: failed(timeout.aborted ? 'timeout' : 'connection') };
  }
}

function failed(what: AttemptFailure['what']): AttemptFailure {
  const recoverable = typeof what === 'number' && isRecoverableStatus(what);
  return { what, recoverable, mayCost: false, retryAfterMs: undefined };
}
