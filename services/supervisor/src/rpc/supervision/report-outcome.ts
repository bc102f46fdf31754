import type { SupervisionService } from '@writ/contracts/writ/supervision/v1/supervision_service_pb';
import type { Phase } from '@writ/kernel';
import type { Handler } from '@writ/rpc';
import { callingAgent } from '../../app/agent/admit-agent.ts';
import { reportOutcome as report } from '../../app/agent/report-outcome.ts';
import { readCarriedReceipts } from '../../app/review/carried-receipts.ts';
import type { SupervisorContext } from '../../context.ts';

/**
 * ReportOutcome: ends an agent for a reason other than an approved final answer. The supervisor marks a stop reason
 * that it cannot verify as unverified; the first ending is final (SV-7, RT-4).
 */
export function reportOutcome(
  context: SupervisorContext,
): Handler<typeof SupervisionService.method.reportOutcome> {
  return async (request, call) => {
    // Receipts are verified before the transaction, so that the transaction does not wait for signature checks.
    const recordCarried = await readCarriedReceipts(context, callingAgent(call), request);
    const { stopReason, callId, detail } = request;
    const reported = { stopReason, phase: request.phase as Phase, callId };
    return await report(context, { reported, detail, recordCarried }, call);
  };
}
