import { isJsonObject, type JsonObject, type JsonValue } from '@writ/kernel';
import type { ModelEntry } from '../domain/catalog/catalog.ts';
import { type AttemptFailure, isRecoverableStatus } from '../domain/chat/failure.ts';
import { boundedFetch, ResponseTooLargeError } from './model-call/bounded-fetch.ts';

/** A request for which the provider charges nothing, such as a token count. */
export interface FreeRequest {
  readonly model: ModelEntry;
  /** Path below the base URL, with its query. */
  readonly path: string;
  readonly init: RequestInit;
  readonly signal: AbortSignal;
}

/** The answer of a provider, or the failure of the request. */
export type FreeAnswer = { readonly answer: JsonObject } | { readonly failure: AttemptFailure };

/** Maximum size of an answer, so that it fits into one gRPC message between services together with the other fields. */
const MAX_BYTES = 3 * 1024 * 1024;

/** Sends a free request, within the timeout of the model. Errors of the provider are returned, not thrown. */
export async function sendFreeRequest({
  model,
  path,
  init,
  signal,
}: FreeRequest): Promise<FreeAnswer> {
  const timeout = AbortSignal.timeout(model.timeoutMs);
  const url = `${model.baseUrl.replace(/\/$/, '')}${path}`;
  try {
    const response = await boundedFetch(url, {
      ...init,
      signal: AbortSignal.any([signal, timeout]),
    });
    if (!response.ok) return { failure: failed(response.status) };
    const body = await response.text();
    if (Buffer.byteLength(body) > MAX_BYTES) return { failure: failed('bad_response') };
    const answer = JSON.parse(body) as JsonValue;
    return isJsonObject(answer) ? { answer } : { failure: failed('bad_response') };
  } catch (error) {
    const isInvalid = error instanceof SyntaxError || error instanceof ResponseTooLargeError;
    if (isInvalid) return { failure: failed('bad_response') };
    return { failure: failed(timeout.aborted ? 'timeout' : 'connection') };
  }
}

function failed(what: AttemptFailure['what']): AttemptFailure {
  const recoverable = typeof what === 'number' && isRecoverableStatus(what);
  return { what, recoverable, mayCost: false, retryAfterMs: undefined };
}
