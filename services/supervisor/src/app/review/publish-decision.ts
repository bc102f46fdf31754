import { create } from '@bufbuild/protobuf';
import { DecisionSchema } from '@writ/contracts/writ/review/v1/decision_pb';
import { derivedId } from '@writ/kernel';
import type { HumanAnswer } from '../../domain/result/run-result.ts';
import type { DecisionRow } from '../../store/review/decisions.ts';
import { appendTimeline } from '../../store/run/timeline.ts';
import type { SupervisorTransaction } from '../../store/supervisor-store.ts';
import { decisionMessage } from '../../wire/decision.ts';
import { encodeEntry } from '../../wire/timeline.ts';
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
  const value = create(DecisionSchema, decisionMessage(row, { human }));
  return await appendTimeline(
    trx,
    {
      tenant: key.tenant,
      runId: key.runId,
      eventId: derivedId('evt', key.runId, key.instance, row.call_id, 'DECISION', moment),
      entry: encodeEntry({ case: 'decision', value }, ref),
    },
    at,
  );
}
