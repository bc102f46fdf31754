import type { Client } from '@connectrpc/connect';
import { type Approval, ApprovalState } from '@writ/contracts/writ/approval/v1/approval_pb';
import type {
  ApprovalService,
  WatchApprovalsResponse,
} from '@writ/contracts/writ/approval/v1/approval_service_pb';
import { resumed, type WatchLimits } from './resume-watches.ts';

type Approvals = Client<typeof ApprovalService>;

/**
 * Wraps watchApprovals: heartbeats are not delivered, and after `silenceMs` without a message, or after UNAVAILABLE, the
 * watch continues on another stream. The new stream lists the pending approvals again. Approvals that were already
 * delivered are omitted; approvals that closed in the meantime are read and delivered. The watch fails like a watch of
 * `resumeWatches`.
 */
export function resumeApprovals(approvals: Approvals, limits: WatchLimits = {}): Approvals {
  const watchApprovals: Approvals['watchApprovals'] = (request, options) => {
    const pending = new Set<string>();
    const closedMeanwhile = new Set<string>();
    const isUndelivered = ({ approvalId, state }: Approval) => {
      if (closedMeanwhile.has(approvalId)) return false;
      if (state !== ApprovalState.PENDING) {
        pending.delete(approvalId);
        return true;
      }
      const isKnown = pending.has(approvalId);
      pending.add(approvalId);
      return !isKnown;
    };
    return resumed<WatchApprovalsResponse>(
      (callOptions) => approvals.watchApprovals(request, callOptions),
      options,
      limits,
      async (message, resumes) => {
        const closed = resumes ? await closedOf(approvals, pending) : [];
        const undelivered = closed.filter(isUndelivered);
        // The message may be older than these reads and list a closed approval as pending.
        for (const { approvalId } of closed) closedMeanwhile.add(approvalId);
        const { approval } = message;
        if (approval !== undefined && isUndelivered(approval)) undelivered.push(approval);
        return undelivered.map((one) => ({ ...message, heartbeat: false, approval: one }));
      },
    );
  };
  return { ...approvals, watchApprovals };
}

/** The approvals of `ids` that are no longer pending. */
async function closedOf(approvals: Approvals, ids: Iterable<string>): Promise<Approval[]> {
  const closed: Approval[] = [];
  for (const approvalId of ids) {
    const { approval } = await approvals.getApproval({ approvalId });
    if (approval && approval.state !== ApprovalState.PENDING) closed.push(approval);
  }
  return closed;
}
