import type { ReviewService } from '@writ/contracts/writ/review/v1/review_service_pb';
import type { Handler } from '@writ/rpc';
import { admitAgent } from '../../app/agent/admit-agent.ts';
import { assertHoldsSlot } from '../../app/review/assert-slot.ts';
import { standingDecision } from '../../app/review/current-decision.ts';
import { actingOf, assertActs } from '../../app/review/review-subject.ts';
import type { SupervisorContext } from '../../context.ts';
import { loadDecision } from '../../store/review/decisions.ts';

/**
 * GetDecision: a decision as it stands now, with a fresh writ for an approved call, which is executed
 * once however many there are; nothing for an agent that has ended or is paused, or a halted run (SV-6, SB-4).
 */
export function getDecision(
  context: SupervisorContext,
): Handler<typeof ReviewService.method.getDecision> {
  return async ({ callId }, call) => {
    const decision = await context.store.transaction(async (trx) => {
      const acting = await actingOf(trx, await admitAgent(trx, call));
      await assertActs(trx, acting);
      await assertHoldsSlot(trx, acting, call, context.clock.now());
      const row = await loadDecision(trx, { ...acting.key, callId });
      return await standingDecision(trx, context, acting, row);
    });
    return { decision };
  };
}
