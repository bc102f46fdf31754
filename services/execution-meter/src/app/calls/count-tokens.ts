import { freezesOver } from '@writ/freeze';
import { type AgentKey, InvalidRequestError, type JsonObject } from '@writ/kernel';
import type { MeterContext } from '../../context.ts';
import type { ChatRequest } from '../../domain/chat/chat.ts';
import { callFailure, failureError } from '../../domain/chat/failure.ts';
import { countAtProvider } from '../../providers/count-at-provider.ts';
import type { MeterTransaction } from '../../store/meter-store.ts';
import { requireSpendable, requireTab } from '../../store/require-spendable.ts';
import type { StoredTab } from '../../store/tabs.ts';
import { providerKey, requireDialect } from './call-planner.ts';

/** A model request whose tokens are to be counted for an agent. */
export interface CountedRequest extends AgentKey {
  readonly model: string;
  /** Catalog aliases that the token of the agent allows; the tab must allow them, too. */
  readonly tokenModels: readonly string[];
  readonly chat: ChatRequest;
}

/**
 * Asks the provider how many tokens a request has; nothing is reserved or spent (AP-2).
 * @throws InvalidRequestError DIALECT_NOT_SUPPORTED; the errors of `Catalog.find`, `requireTab` and `requireSpendable`;
 *   PreconditionError PROVIDER_KEY_MISSING, PROVIDER_ERROR; DeadlineError LLM_TIMEOUT
 */
export async function countTokensOf(
  { store, catalog, clock, config }: MeterContext,
  request: CountedRequest,
  signal: AbortSignal,
): Promise<JsonObject> {
  const { native } = request.chat;
  const work = async (trx: MeterTransaction): Promise<StoredTab> => {
    const [found, freezes] = await Promise.all([
      requireTab(trx, request),
      freezesOver(trx, request),
    ]);
    requireSpendable(found, freezes, clock.now());
    return found;
  };
  const tab = await store.transaction(work, { run: request });
  const allowed = tab.models.filter((alias) => request.tokenModels.includes(alias));
  const model = catalog.find(request.model, allowed);
  requireDialect(model, request);
  if (native?.dialect !== 'messages') {
    throw new InvalidRequestError(
      'DIALECT_NOT_SUPPORTED',
      'Tokens can be counted only for requests of the Messages API; native.dialect must be ANTHROPIC_MESSAGES.',
      { field: 'native.dialect' },
    );
  }
  const apiKey = providerKey(model, config.variables);
  const counted = await countAtProvider({ model, apiKey, native, signal });
  if ('answer' in counted) return counted.answer;
  throw failureError(callFailure(model, counted.failure, 1));
}
