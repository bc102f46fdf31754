import type { ApprovalService } from '@writ/contracts/writ/approval/v1/approval_service_pb';
import { type Handler, requirePerson } from '@writ/rpc';
import { presentApproval } from '../../app/approval/present-approval.ts';
import type { SupervisorContext } from '../../context.ts';
import { listApprovals as readApprovals } from '../../store/approval/approvals.ts';
import { approvalStatesFrom } from '../../wire/approval.ts';
import { pageTime, pageToken, readPageToken } from '../../wire/page-token.ts';

const DEFAULT_PAGE = 50;

/** ListApprovals: a tenant's approvals across its runs, newest first (SV-5, SYS-6). */
export function listApprovals(
  context: SupervisorContext,
): Handler<typeof ApprovalService.method.listApprovals> {
  return async (request, call) => {
    const person = requirePerson(call);
    const { runId, agentName, tool } = request;
    const states = approvalStatesFrom(request.states);
    const filters = { tenant: person.tenant, states, runId, agentName, tool };
    const limit = request.pageSize === 0 ? DEFAULT_PAGE : request.pageSize;
    const [createdAt = '', approvalId = ''] = readPageToken(request.pageToken, filters, 2) ?? [];
    const after = approvalId === '' ? undefined : { createdAt: pageTime(createdAt), approvalId };
    const rows = await readApprovals(context.store.db, { ...filters, after, limit: limit + 1 });
    const page = rows.slice(0, limit);
    const last = page.at(-1);
    return {
      approvals: await Promise.all(page.map((row) => presentApproval(context, row, person))),
      nextPageToken:
        rows.length > limit && last !== undefined
          ? pageToken([last.created_at.toISOString(), last.approval_id], filters)
          : '',
    };
  };
}
