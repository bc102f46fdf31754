import type { ApprovalService } from '@writ/contracts/writ/approval/v1/approval_service_pb';
import { type Handler, requirePerson } from '@writ/rpc';
import { readApproval } from '../../app/approval/read-approvals.ts';
import type { SupervisorContext } from '../../context.ts';

/** GetApproval: one approval, with the caps of the reader (SV-5). */
export function getApproval(
  context: SupervisorContext,
): Handler<typeof ApprovalService.method.getApproval> {
  return async ({ approvalId }, call) => ({
    approval: await readApproval(context, requirePerson(call), approvalId),
  });
}
