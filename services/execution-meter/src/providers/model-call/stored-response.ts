import type { ModelEntry } from '../../domain/catalog/catalog.ts';
import { type FreeAnswer, sendFreeRequest } from '../free-request.ts';

/** Operation on a stored answer. */
export type StoredResponseAccess = 'read' | 'list_input_items' | 'cancel' | 'delete';

/** A request to read, list, cancel or delete an answer that the provider has stored. */
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
/**
 * Query parameters that are passed to the provider. Other parameters are dropped: `stream`, for example, would change
 * the format of the answer.
 */
const PARAMETERS = /^(after|limit|order|include(\[\])?)$/;
/** Reads, cancels or deletes an answer at its provider, which is free. Never throws for errors of the provider. */
export async function accessAtProvider({
  model,
  apiKey,
  responseId,
  access,
  query,
  signal,
}: ProviderAccess): Promise<FreeAnswer> {
  const { method, path } = REQUESTS[access];
  const parameters = new URLSearchParams(
    [...new URLSearchParams(query)].filter(([name]) => PARAMETERS.test(name)),
  );
  const search = parameters.size === 0 ? '' : `?${parameters}`;
  const headers = apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` };
  return await sendFreeRequest({
    model,
    path: `/responses/${encodeURIComponent(responseId)}${path}${search}`,
    init: { method, headers },
    signal,
  });
}
