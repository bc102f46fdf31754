import type { ApprovalService } from '@writ/contracts/writ/approval/v1/approval_service_pb';
import { type Handler, requirePerson } from '@writ/rpc';
import { presentApproval } from '../../app/approval/present-approval.ts';
import { listApprovals as list } from '../../app/approval/read-approvals.ts';
import type { SupervisorContext } from '../../context.ts';
import { approvalStatesFrom } from '../../wire/approval.ts';
import { pageAt, readPage, readPageAt } from '../../wire/page-token.ts';

/** ListApprovals: a tenant's approvals across its runs, newest first (SV-5, SYS-6). */
export function listApprovals(
  context: SupervisorContext,
): Handler<typeof ApprovalService.method.listApprovals> {
  return async (request, call) => {
    const person = requirePerson(call);
    const { runId, agentName, tool } = request;
    const states = approvalStatesFrom(request.states);
    const filters = { tenant: person.tenant, states, runId, agentName, tool };
    const { page, nextPageToken } = await readPage(request, {
      filters,
      parts: 2,
      read: (position, limit) => {
        const at = readPageAt(position);
        const after = at && { createdAt: at.time, approvalId: at.id };
        return list(context, { ...filters, after, limit });
      },
      positionOf: (row) => pageAt(row.created_at, row.approval_id),
    });
    const approvals = page.map((row) => presentApproval(context, row, person));
    return { approvals: await Promise.all(approvals), nextPageToken };
  };
}
