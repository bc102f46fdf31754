import type { ReviewService } from '@writ/contracts/writ/review/v1/review_service_pb';
import { requireSlotGrant } from '@writ/identity';
import type { Handler } from '@writ/rpc';
import { ATTR_WRIT_CALL_ID, ATTR_WRIT_RUN_ID, ATTR_WRIT_TENANT, withSpan } from '@writ/telemetry';
import type { SupervisorContext } from '../../context.ts';
import { callingAgent } from '../supervision/acting-agent.ts';
import { carriedReceipts } from './carried-receipts.ts';
import { findProposedTool } from './find-tool.ts';
import { proposalFrom } from './read-request.ts';
import { reviewProposal } from './review-proposal.ts';

/** ReviewAction: judges one proposal before it takes effect, in one transaction (SV-1). */
export function reviewAction(
  context: SupervisorContext,
): Handler<typeof ReviewService.method.reviewAction> {
  const readCarried = carriedReceipts(context);
  return async (request, call) => {
    const startedAt = performance.now();
    const proposal = proposalFrom(request);
    // A paused agent holds no slot, and its partial result still gets out (SB-4).
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
        readCarried(agent, request.receipts, request.observations),
      ]);
      const decision = await context.store.transaction((trx) =>
        reviewProposal(trx, context, { call, proposal, findTool, recordCarried, startedAt }),
      );
      return { decision };
    });
  };
}
