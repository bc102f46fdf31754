import type { SupervisionService } from '@writ/contracts/writ/supervision/v1/supervision_service_pb';
import type { Phase } from '@writ/kernel';
import type { Handler } from '@writ/rpc';
import { callingAgent } from '../../app/agent/admit-agent.ts';
import { reportOutcome as report } from '../../app/agent/report-outcome.ts';
import { readCarriedReceipts } from '../../app/review/carried-receipts.ts';
import type { SupervisorContext } from '../../context.ts';

/**
 * ReportOutcome: ends an agent that no approved final ended. A stop reason that the supervisor cannot verify is marked
 * as reported by the worker only; the first ending is final (SV-7, RT-4).
 */
export function reportOutcome(
  context: SupervisorContext,
): Handler<typeof SupervisionService.method.reportOutcome> {
  return async (request, call) => {
    // Before the transaction, which then does not wait for signatures.
    const recordCarried = await readCarriedReceipts(context, callingAgent(call), request);
    const { stopReason, callId, detail } = request;
    const reported = { stopReason, phase: request.phase as Phase, callId };
    return await report(context, { reported, detail, recordCarried }, call);
  };
}
