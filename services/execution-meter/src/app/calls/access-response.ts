import { freezesOver } from '@writ/freeze';
import { type AgentKey, type JsonObject, NotFoundError } from '@writ/kernel';
import type { MeterContext } from '../../context.ts';
import { callFailure, failureError } from '../../domain/chat/failure.ts';
import {
  accessAtProvider,
  type StoredResponseAccess,
} from '../../providers/model-call/stored-response.ts';
import { requireSpendable, requireTab } from '../../store/require-spendable.ts';
import { deleteResponse, knownIds } from '../../store/responses.ts';
import { providerIdOf, providerKey } from './call-planner.ts';

/** A request of an agent to read, cancel or delete an answer that a provider has stored. */
export interface AccessedResponse extends AgentKey {
  readonly responseId: string;
  readonly access: StoredResponseAccess;
  /** Query string for the provider, for example the paging parameters of a list request; may be empty. */
  readonly query: string;
  /** Catalog aliases that the token of the agent allows; the tab must allow them, too. */
  readonly tokenModels: readonly string[];
}

/**
 * Reads, cancels or deletes a stored answer at the provider (AP-2), with the account that issued its id to the agent's
 * session. Reserves and spends nothing. Later requests cannot refer to the id of a deleted answer, but they can still
 * refer to the ids of its items.
 * @throws NotFoundError RESPONSE_NOT_FOUND; the errors of `requireTab` and `requireSpendable`; PreconditionError
 *   PROVIDER_KEY_MISSING, PROVIDER_ERROR; DeadlineError LLM_TIMEOUT
 */
export async function accessResponseOf(
  { store, catalog, clock, config }: MeterContext,
  request: AccessedResponse,
  signal: AbortSignal,
): Promise<JsonObject> {
  const { tenant, responseId, access, query, tokenModels } = request;
  const { tab, known } = await store.transaction(
    async (trx) => {
      const [found, freezes] = await Promise.all([
        requireTab(trx, request),
        freezesOver(trx, request),
      ]);
      requireSpendable(found, freezes, clock.now());
      return { tab: found, known: await knownIds(trx, found, [responseId]) };
    },
    { tenant },
  );
  const allowed = tab.models.filter((alias) => tokenModels.includes(alias));
  const model = catalog
    .list(allowed)
    .find((entry) => known.some(({ provider }) => provider === providerIdOf(entry)));
  if (model === undefined) throw notFound(responseId);
  const apiKey = providerKey(model, config.variables);
  const accessed = await accessAtProvider({ model, apiKey, responseId, access, query, signal });
  if ('failure' in accessed) {
    if (accessed.failure.what === 404) throw notFound(responseId);
    throw failureError(callFailure(model, accessed.failure, 1));
  }
  if (access === 'delete') {
    await store.transaction((trx) => deleteResponse(trx, tab, responseId), { tenant });
  }
  return accessed.answer;
}

function notFound(id: string): NotFoundError {
  return new NotFoundError(
    'RESPONSE_NOT_FOUND',
    `The session has received no response ${id}, or the provider has not stored it.`,
    { field: 'response_id' },
  );
}
