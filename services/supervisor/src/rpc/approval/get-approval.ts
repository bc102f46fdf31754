import type { ApprovalService } from '@writ/contracts/writ/approval/v1/approval_service_pb';
import { type Handler, requirePerson } from '@writ/rpc';
import { presentApproval } from '../../app/approval/present-approval.ts';
import type { SupervisorContext } from '../../context.ts';
import { loadApproval } from '../../store/approval/approvals.ts';

/** GetApproval: one approval, with the caps of the reader (SV-5). */
export function getApproval(
  context: SupervisorContext,
): Handler<typeof ApprovalService.method.getApproval> {
  return async ({ approvalId }, call) => {
    const person = requirePerson(call);
    const row = await loadApproval(context.store.db, person.tenant, approvalId);
    return { approval: await presentApproval(context, row, person, { withEvidence: true }) };
  };
}
