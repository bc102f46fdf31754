import { isJsonObject, type JsonObject, type JsonValue } from '@writ/kernel';
import type { ModelEntry } from '../../domain/catalog/catalog.ts';
import { type AttemptFailure, isRecoverableStatus } from '../../domain/chat/failure.ts';
import { boundedFetch } from './bounded-fetch.ts';

/** What is done with a stored answer. */
export type StoredResponseAccess = 'read' | 'list_input_items' | 'cancel' | 'delete';

/** An access to an answer that the provider has stored. */
export interface ProviderAccess {
  readonly model: ModelEntry;
  readonly apiKey: string | undefined;
  readonly responseId: string;
  readonly access: StoredResponseAccess;
  readonly query: string;
  readonly signal: AbortSignal;
}

const REQUESTS = {
  read: { method: 'GET', path: '' },
  list_input_items: { method: 'GET', path: '/input_items' },
  cancel: { method: 'POST', path: '/cancel' },
  delete: { method: 'DELETE', path: '' },
} as const;
/** The parameters of a list; `stream` and others would change the form of the answer. */
const PARAMETERS = /^(after|limit|order|include(\[\])?)$/;
/** As large as one message between services may carry, with space for its fields. */
const MAX_BYTES = 3 * 1024 * 1024;

/** Reads, cancels or deletes an answer at its provider, which is free. Never throws for errors of the provider. */
export async function accessAtProvider({
  model,
  apiKey,
  responseId,
  access,
  query,
  signal,
}: ProviderAccess): Promise<
  { readonly answer: JsonObject } | { readonly failure: AttemptFailure }
> {
  const timeout = AbortSignal.timeout(model.timeoutMs);
  const { method, path } = REQUESTS[access];
  const parameters = new URLSearchParams(
    [...new URLSearchParams(query)].filter(([name]) => PARAMETERS.test(name)),
  );
  const search = parameters.size === 0 ? '' : `?${parameters}`;
  const id = encodeURIComponent(responseId);
  try {
    const response = await boundedFetch(`${model.baseUrl}/responses/${id}${path}${search}`, {
      method,
      headers: apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` },
      signal: AbortSignal.any([signal, timeout]),
    });
    if (!response.ok) return { failure: failed(response.status) };
    const body = await response.text();
    if (Buffer.byteLength(body) > MAX_BYTES) return { failure: failed('bad_response') };
    const answer = JSON.parse(body) as JsonValue;
    return isJsonObject(answer) ? { answer } : { failure: failed('bad_response') };
  } catch (error) {
    if (error instanceof SyntaxError) return { failure: failed('bad_response') };
    return { failure: failed(timeout.aborted ? 'timeout' : 'connection') };
  }
}

function failed(what: AttemptFailure['what']): AttemptFailure {
  const recoverable = typeof what === 'number' && isRecoverableStatus(what);
  return { what, recoverable, mayCost: false, retryAfterMs: undefined };
}
