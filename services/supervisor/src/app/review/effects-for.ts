import type { EffectsView } from '@writ/policy';
import type { Tx } from '../../context.ts';
import { countEffects } from '../../domain/result/count-effects.ts';
import { effectsOf } from '../../store/review/decisions-with-receipts.ts';
import type { ReviewSubject } from './review-subject.ts';

/**
 * Counts the effects of a run until now; returns undefined without a query if no rule of the policy reads them (CO-1).
 */
export async function effectsFor(
  { trx, context: { policy } }: Tx,
  { key }: ReviewSubject,
): Promise<EffectsView | undefined> {
  return policy.readsEffects ? countEffects(await effectsOf(trx, key)) : undefined;
}
