import { applyPending, type Facts, factValues } from '@writ/policy';
import type { Tx } from '../../context.ts';
import type { ApprovalCheck } from '../../domain/approval/judge-answer.ts';
import { factCallId } from '../../domain/facts/settle-receipt.ts';
import type { ReviewedTool } from '../../domain/review/reviewed-tool.ts';
import { recordEnding } from '../../store/agent/endings.ts';
import { type ApprovalRow, humanAnswerOf, saveApproval } from '../../store/approval/approvals.ts';
import { callKeyOf, type DecisionRow, saveDecision } from '../../store/review/decisions.ts';
import { saveFacts } from '../../store/review/facts.ts';
import { countApprovedCall } from '../../store/run/runs.ts';
import { executionColumns, publishDecision } from '../review/decision-row.ts';
import type { ReviewSubject } from '../review/review-subject.ts';
import { type AnswerRequest, BY_AGENT } from './answer-request.ts';
import { publishApproval } from './publish-approval.ts';

/** The stop reason of a withdrawn proposal. */
export const WITHDRAWN = 'withdrawn';

/** A pending approval with the decision that it settles. */
export interface PendingApproval {
  readonly approval: ApprovalRow;
  readonly decision: DecisionRow;
  readonly subject: ReviewSubject;
}

/** An approving answer that policy and caps allow. */
export interface AllowedAnswer {
  readonly request: AnswerRequest;
  readonly allowed: Extract<ApprovalCheck, { kind: 'allowed' }>;
  readonly tool: ReviewedTool | undefined;
  readonly facts: Facts;
}

/**
 * Approves the action. The action then counts towards every cap, so that the second of two approvals that together
 * exceed a cap is refused. An approved final answer ends its agent (SV-3, SV-5). Returns the updated approval.
 */
export async function settleApproved(
  tx: Tx,
  pending: PendingApproval,
  { request, allowed, tool, facts }: AllowedAnswer,
): Promise<ApprovalRow> {
  const { trx, at, context } = tx;
  const { policy } = context;
  const { approval, decision, subject } = pending;
  const key = callKeyOf(decision);
  const { action } = allowed;
  const after = applyPending(policy, facts, factCallId(key), action);
  if (after !== facts) await saveFacts(trx, key, after);
  const unedited = decision.revised_action === null ? 'original' : 'supervisor_revised';
  const columns = executionColumns(action, allowed.edited ? 'human_revised' : unedited, tool);
  const settled = await settle(tx, pending, {
    decision: {
      ...columns,
      // The writ contains the policy version that allowed the action.
      policy_version: policy.version,
      facts_after: JSON.stringify(factValues(policy, after)),
    },
    approval: {
      state: 'approved',
      approved: true,
      executed_action: columns.executed_action,
      basis: allowed.basis,
      ...answerColumns(request),
    },
  });
  if (columns.args_sha256 !== null) await countApprovedCall(trx, key);
  if (action.kind === 'final') {
    const stopReason = decision.partial ? 'paused' : 'success';
    const ending = { ...subject.key, stopReason, callId: approval.call_id, answer: action.answer };
    await recordEnding(trx, ending, at);
  }
  return settled;
}

/** Records that the action is not approved: rejected by `request`, or expired if `request` is undefined (SV-5). */
export async function settleNotApproved(
  tx: Tx,
  pending: PendingApproval,
  request: AnswerRequest | undefined,
): Promise<ApprovalRow> {
  return await settle(tx, pending, {
    decision: {
      stop_reason: request === undefined ? 'approval_expired' : 'human_rejected',
      phase: 'human_approval',
    },
    approval:
      request === undefined
        ? { state: 'expired', approved: false }
        : { state: 'rejected', approved: false, ...answerColumns(request) },
  });
}

/** Settles a proposal that its agent has withdrawn: no person can decide it afterwards (AP-4). */
export async function settleWithdrawn(tx: Tx, pending: PendingApproval): Promise<void> {
  await settle(tx, pending, {
    decision: { stop_reason: WITHDRAWN, phase: 'human_approval' },
    approval: { state: 'withdrawn', basis: BY_AGENT },
  });
}

async function settle(
  tx: Tx,
  { approval, decision, subject }: PendingApproval,
  changes: { readonly decision: Partial<DecisionRow>; readonly approval: Partial<ApprovalRow> },
): Promise<ApprovalRow> {
  const { trx, at } = tx;
  const row: ApprovalRow = { ...approval, ...changes.approval, decided_at: at };
  const settled: DecisionRow = { ...decision, ...changes.decision, settled: true };
  await saveApproval(trx, approval, { ...changes.approval, decided_at: at });
  await saveDecision(trx, callKeyOf(decision), { ...changes.decision, settled: true });
  await publishApproval(tx, subject, row);
  await publishDecision(tx, subject, settled, { name: 'settled', human: humanAnswerOf(row) });
  return row;
}

function answerColumns({ person, requestId, digest, comment }: AnswerRequest) {
  return {
    decided_by: person.subject,
    comment,
    request_id: requestId,
    request_digest: digest,
  };
}
