import type { ApprovalService } from '@writ/contracts/writ/approval/v1/approval_service_pb';
import { type Handler, requirePerson } from '@writ/rpc';
import { presentApproval } from '../../app/approval/present-approval.ts';
import { watchApprovals as watch } from '../../app/approval/watch-approvals.ts';
import type { SupervisorContext } from '../../context.ts';

/** WatchApprovals: streams the pending approvals of a tenant, then each approval that opens or closes. */
export function watchApprovals(
  context: SupervisorContext,
): Handler<typeof ApprovalService.method.watchApprovals> {
  return async function* ({ runId }, call) {
    const person = requirePerson(call);
    for await (const row of watch(context, { tenant: person.tenant, runId }, call.signal)) {
      if (row === 'heartbeat') {
        yield { heartbeat: true };
        continue;
      }
      const withEvidence = row.state === 'pending';
      yield { approval: await presentApproval(context, row, person, { withEvidence }) };
    }
  };
}
