import type { ModelEntry } from '../../domain/catalog/catalog.ts';
import { type FreeAnswer, sendFreeRequest } from '../free-request.ts';

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
