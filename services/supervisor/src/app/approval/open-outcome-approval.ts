import type { Tx } from '../../context.ts';
import type { Receipt } from '../../domain/facts/receipt.ts';
import { actionFrom } from '../../domain/result/recorded-action.ts';
import { suspendAgent } from '../../store/agent/suspension.ts';
import { findApproval, saveApproval } from '../../store/approval/approvals.ts';
import type { DecisionRow } from '../../store/review/decisions.ts';
import type { ReviewSubject } from '../review/review-subject.ts';
import { approvalIdOf, openApproval } from './open-approval.ts';
import { publishApproval } from './publish-approval.ts';

/**
 * Opens the approval that asks a person for the outcome of a call whose receipt has the status `unknown`, and suspends
 * the agent: such a call is never retried automatically (TG-5).
 */
export async function openOutcomeApproval(
  tx: Tx,
  subject: ReviewSubject,
  decision: DecisionRow,
  receipt: Receipt,
): Promise<void> {
  const action = actionFrom(decision.executed_action);
  if (action === undefined) return;
  await openApproval(tx, subject, {
    kind: 'resolve',
    callId: decision.call_id,
    step: decision.step,
    action,
    reason: receipt.stopReason,
    ruleId: decision.rule_id,
    risk: decision.risk,
    policyVersion: decision.policy_version,
  });
  await suspendAgent(tx.trx, subject.key, tx.at);
}

/**
 * Closes the approval of {@link openOutcomeApproval} when the receipt of the resolved outcome arrives (TG-5). After a
 * crash, the receipt may arrive before the client repeats the request that resolved the outcome. The receipt names the
 * person who resolved it.
 */
export async function settleOutcomeApproval(
  tx: Tx,
  subject: ReviewSubject,
  receipt: Receipt,
): Promise<void> {
  const { trx, at } = tx;
  const id = approvalIdOf(subject, 'resolve', receipt.callId);
  const approval = await findApproval(trx, subject.key.tenant, id);
  if (approval?.state !== 'pending') return;
  const changes = {
    state: 'resolved',
    approved: receipt.status === 'ok',
    decided_by: receipt.resolvedBy,
    decided_at: at,
  } as const;
  await saveApproval(trx, approval, changes);
  await publishApproval(tx, subject, { ...approval, ...changes });
}
