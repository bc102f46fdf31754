import { type CallPlan, spendingFor } from '../../domain/catalog/plan.ts';
import type { ChatAnswer } from '../../domain/chat/chat.ts';
import type { Hold } from '../../domain/ledger/entry.ts';
import { NO_SPENDING, NO_USAGE, type Spending } from '../../domain/ledger/spending.ts';
import type { AttemptOutcome } from '../provider.ts';
import { countTokens } from '../token-counter.ts';

/**
 * What an attempt is booked with (EM-8): the provider's own figures where there are any, else an
 * estimate of the prompt and of what had come. Of an answer that was not streamed nobody saw how far it
 * had come, so that all that was held counts. What a provider refused cost nothing.
 */
export async function spendingOf(
  outcome: AttemptOutcome,
  plan: CallPlan,
  hold: Hold,
  promptTokens: () => Promise<bigint>,
): Promise<Spending> {
  if (outcome.type === 'failed' && !outcome.failure.mayCost) return NO_SPENDING;
  if (outcome.type === 'aborted' && !outcome.sent) return NO_SPENDING;
  if (outcome.type !== 'aborted' && outcome.usage !== undefined) {
    return spendingFor(plan, outcome.usage, false);
  }
  const texts = outcome.type === 'answered' ? textsOf(outcome.answer) : outcome.partial;
  if (texts === undefined) return { ...hold, estimated: true, failed: false };
  const [input, output] = await Promise.all([promptTokens(), countTokens(texts)]);
  return spendingFor(plan, { ...NO_USAGE, input, output }, true);
}

function textsOf({ text, toolUses }: ChatAnswer): string[] {
  return [text, ...toolUses.flatMap(({ tool, argumentsJson }) => [tool, argumentsJson])];
}
