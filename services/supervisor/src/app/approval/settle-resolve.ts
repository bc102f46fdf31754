import type { SupervisorContext } from '../../context.ts';
import type { Receipt } from '../../domain/facts/receipt.ts';
import { findApproval, saveApproval } from '../../store/approval/approvals.ts';
import type { SupervisorTransaction } from '../../store/supervisor-store.ts';
import type { Acting } from '../review/review-subject.ts';
import { approvalIdOf } from './open-approval.ts';
import { announceAnswer } from './record-answer.ts';

/**
 * Closes the question what became of a call once a receipt answers it, also when that receipt came
 * by itself after a crash (TG-5). The one who found out is the one in the receipt.
 */
export async function settleResolve(
  trx: SupervisorTransaction,
  { events, policy }: Pick<SupervisorContext, 'events' | 'policy'>,
  acting: Acting,
  receipt: Receipt,
  at: Date,
): Promise<void> {
  const id = approvalIdOf(acting, 'resolve', receipt.callId);
  const approval = await findApproval(trx, acting.key.tenant, id);
  if (approval?.state !== 'pending') return;
  const changes = {
    state: 'resolved',
    approved: receipt.status === 'ok',
    decided_by: receipt.resolvedBy,
    decided_at: at,
  } as const;
  await saveApproval(trx, approval, changes);
  const settled = { ...approval, ...changes };
  await announceAnswer(trx, { events }, acting, settled, policy.version, at);
}
