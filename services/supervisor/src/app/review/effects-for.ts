import type { EffectsView } from '@writ/policy';
import type { Tx } from '../../context.ts';
import { countEffects } from '../../domain/result/effects.ts';
import { effectsOf } from '../../store/review/decisions-with-receipts.ts';
import type { ReviewSubject } from './review-subject.ts';

/** The effects of a run so far; undefined when no rule of the policy reads them, which saves the query (CO-1). */
export async function effectsFor(
  { trx, context: { policy } }: Tx,
  { key }: ReviewSubject,
): Promise<EffectsView | undefined> {
  return policy.readsEffects ? countEffects(await effectsOf(trx, key)) : undefined;
}
