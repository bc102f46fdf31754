import type { ReviewSide, SupervisorContext } from '../../context.ts';
import { loadAgent } from '../../store/agent/agents.ts';
import { loadDecision } from '../../store/review/decisions.ts';
import { actingOf } from './acting.ts';
import { carriedReceipts } from './carried-receipts.ts';
import { settleWrits } from './settle-writs.ts';
import { standingDecision } from './standing-decision.ts';

/** What runs and their orders need of reviews. */
export function createReviewSide(context: SupervisorContext): ReviewSide {
  return {
    carriedReceipts: carriedReceipts(context),
    settleWrits: settleWrits(context),
    async decisionNow(key, callId) {
      return await context.store.transaction(async (trx) => {
        const acting = await actingOf(trx, await loadAgent(trx, key));
        const row = await loadDecision(trx, { ...key, callId });
        return await standingDecision(trx, context, acting, row);
      });
    },
  };
}
