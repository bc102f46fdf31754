import type { ReviewService } from '@writ/contracts/writ/review/v1/review_service_pb';
import type { Handler } from '@writ/rpc';
import { admitAgent } from '../../app/agent/admit-agent.ts';
import { currentDecision } from '../../app/review/current-decision.ts';
import { assertHoldsSlot, assertMayAct, subjectOf } from '../../app/review/review-subject.ts';
import { type SupervisorContext, transact } from '../../context.ts';
import { loadDecision } from '../../store/review/decisions.ts';

/**
 * GetDecision: the current state of a decision, with a new writ for an approved call, which is executed only once.
 * Rejects an agent that has ended, is paused or is halted (SV-6, SB-4).
 */
export function getDecision(
  context: SupervisorContext,
): Handler<typeof ReviewService.method.getDecision> {
  return async ({ callId }, call) => {
    const decision = await transact(context, async (tx) => {
      const subject = await subjectOf(tx.trx, await admitAgent(tx.trx, call));
      await assertMayAct(tx.trx, subject);
      await assertHoldsSlot(tx, subject, call);
      const row = await loadDecision(tx.trx, { ...subject.key, callId });
      return await currentDecision(tx, subject, row);
    });
    return { decision };
  };
}
