import type { ReviewService } from '@writ/contracts/writ/review/v1/review_service_pb';
import { requireSlotGrant } from '@writ/identity';
import type { Handler } from '@writ/rpc';
import { ATTR_WRIT_CALL_ID, ATTR_WRIT_RUN_ID, ATTR_WRIT_TENANT, withSpan } from '@writ/telemetry';
import { callingAgent } from '../../app/agent/admit-agent.ts';
import { readCarriedReceipts } from '../../app/review/carried-receipts.ts';
import { findProposedTool, reviewProposal } from '../../app/review/review-proposal.ts';
import { type SupervisorContext, transact } from '../../context.ts';
import { proposalFrom } from '../../wire/proposal.ts';

/** ReviewAction: reviews one proposal before it takes effect, in one transaction (SV-1). */
export function reviewAction(
  context: SupervisorContext,
): Handler<typeof ReviewService.method.reviewAction> {
  return async (request, call) => {
    const startedAt = performance.now();
    const proposal = proposalFrom(request);
    // A paused agent has no slot, and may still deliver its partial result (SB-4).
    if (!proposal.partial) requireSlotGrant(call.caller);
    const agent = callingAgent(call);
    const attributes = {
      [ATTR_WRIT_TENANT]: agent.tenant,
      [ATTR_WRIT_RUN_ID]: agent.runId,
      [ATTR_WRIT_CALL_ID]: proposal.callId,
    };
    return await withSpan(context.telemetry.tracer, 'review', { attributes }, async () => {
      const [findTool, recordCarried] = await Promise.all([
        findProposedTool(context.peers.toolGateway, proposal),
        readCarriedReceipts(context, agent, request),
      ]);
      const review = { call, proposal, findTool, recordCarried, startedAt };
      return {
        decision: await transact(context, (tx) => reviewProposal(tx, review), { run: agent }),
      };
    });
  };
}
