import { derivedId, sha256Hex } from '@writ/kernel';
import type { Tx } from '../../context.ts';
import { actionFacts } from '../../domain/audit/audit-facts.ts';
import type { WakeAgentPayload } from '../../domain/order/order-payloads.ts';
import { actionFrom } from '../../domain/result/recorded-action.ts';
import type { ApprovalRow } from '../../store/approval/approvals.ts';
import { appendAudit } from '../../store/audit/append-audit.ts';
import { placeOrder } from '../../store/orders.ts';
import type { ReviewSubject } from '../review/review-subject.ts';

/**
 * Publishes a decided approval in the transaction that decides it: the hook event, the audit record, and the order
 * that wakes the agent (SV-5, SV-8, HK-1).
 */
export async function publishApproval(
  { trx, at, context: { events, policy } }: Tx,
  { run, ref, key }: ReviewSubject,
  approval: ApprovalRow,
): Promise<void> {
  const { approval_id: approvalId, call_id: callId, step, state, tool, kind } = approval;
  const waitedFor = { since: approval.created_at, approver: approval.decided_by };
  await events.approvalDecided(
    trx,
    { run, agent: ref, step, callId },
    { approvalId, status: state, toolName: tool, waitedFor },
    at,
  );
  await appendAudit(
    trx,
    {
      ...key,
      kind: 'approval',
      callId,
      facts: {
        approval_id: approvalId,
        asked: kind,
        state,
        approver: approval.decided_by ?? undefined,
        // Omits the amount of a cap, because audit records contain no content.
        basis: approval.basis?.split(':')[0],
        comment_sha256: approval.comment ? sha256Hex(approval.comment) : undefined,
        rule: approval.rule_id,
        policy_version: policy.version,
        ...actionFacts('action', actionFrom(approval.action)),
        ...actionFacts('executed', actionFrom(approval.executed_action)),
      },
    },
    at,
  );
  const payload: WakeAgentPayload = { instance: key.instance, callId };
  const orderId = derivedId('ord', approvalId, 'wake_agent');
  await placeOrder(trx, { ...key, orderId, kind: 'wake_agent', payload }, at);
}
