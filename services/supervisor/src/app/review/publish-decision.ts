import { derivedId } from '@writ/kernel';
import type { HumanAnswer } from '../../domain/result/run-result.ts';
import type { DecisionRow } from '../../store/review/decisions.ts';
import { appendTimeline } from '../../store/run/timeline.ts';
import type { SupervisorTransaction } from '../../store/supervisor-store.ts';
import { encodeDecision } from '../../wire/timeline.ts';
import type { Acting } from './review-subject.ts';

/**
 * Puts a decision on its run's timeline, without the writ: when it is made, and again when a person
 * has settled it (HK-1). Returns its place.
 */
export async function tellDecision(
  trx: SupervisorTransaction,
  { key, ref }: Acting,
  row: DecisionRow,
  moment: 'decided' | 'settled',
  at: Date,
  human?: HumanAnswer,
): Promise<number> {
  return await appendTimeline(
    trx,
    {
      tenant: key.tenant,
      runId: key.runId,
      eventId: derivedId('evt', key.runId, key.instance, row.call_id, 'DECISION', moment),
      entry: encodeDecision(row, ref, human),
    },
    at,
  );
}
