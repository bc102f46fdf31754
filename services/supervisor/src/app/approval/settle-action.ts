import { applyPending, type Facts, factValues } from '@writ/policy';
import type { SupervisorContext } from '../../context.ts';
import type { YesOutcome } from '../../domain/approval/judge-answer.ts';
import { factCallId } from '../../domain/facts/settle-receipt.ts';
import type { ReviewedTool } from '../../domain/review/reviewed-tool.ts';
import { recordEnding } from '../../store/agent/endings.ts';
import { type ApprovalRow, humanAnswerOf, saveApproval } from '../../store/approval/approvals.ts';
import { callKeyOf, type DecisionRow, saveDecision } from '../../store/review/decisions.ts';
import { saveFacts } from '../../store/review/facts.ts';
import { countApprovedCall } from '../../store/run/runs.ts';
import type { SupervisorTransaction } from '../../store/supervisor-store.ts';
import { executionColumns } from '../review/decision-row.ts';
import { tellDecision } from '../review/publish-decision.ts';
import type { Acting } from '../review/review-subject.ts';
import type { AnswerRequest } from './answer.ts';
import { announceAnswer } from './record-answer.ts';

/** A pending approval with the decision that waits for it. */
export interface Asked {
  readonly approval: ApprovalRow;
  readonly decision: DecisionRow;
  readonly acting: Acting;
}

/** A yes that rules and caps let through. */
export interface GivenYes {
  readonly request: AnswerRequest;
  readonly yes: Extract<YesOutcome, { kind: 'go' }>;
  readonly tool: ReviewedTool | undefined;
  readonly facts: Facts;
}

/**
 * Takes a yes: from now on the action counts for every cap, so that of two that do not fit together
 * the second is refused; a final ends its agent (SV-3, SV-5). Returns the approval as it stands.
 */
export async function settleYes(
  trx: SupervisorTransaction,
  context: SupervisorContext,
  asked: Asked,
  { request, yes, tool, facts }: GivenYes,
  at: Date,
): Promise<ApprovalRow> {
  const { policy } = context;
  const { approval, decision, acting } = asked;
  const key = callKeyOf(decision);
  const { action } = yes;
  const after = applyPending(policy, facts, factCallId(key), action);
  if (after !== facts) await saveFacts(trx, key, after);
  const unedited = decision.revised_action === null ? 'original' : 'supervisor_revised';
  const columns = executionColumns(action, yes.edited ? 'human_revised' : unedited, tool);
  const settled = await settle(
    trx,
    context,
    asked,
    {
      ...columns,
      // Today's rules said yes, so the writ names them.
      policy_version: policy.version,
      facts_after: JSON.stringify(factValues(policy, after)),
    },
    {
      state: 'approved',
      approved: true,
      executed_action: columns.executed_action,
      ...answerColumns(request, request.comment || yes.comment),
    },
    at,
  );
  if (columns.args_sha256 !== null) await countApprovedCall(trx, key);
  if (action.kind === 'final') {
    const stopReason = decision.partial ? 'paused' : 'success';
    const ending = { ...acting.key, stopReason, callId: approval.call_id, answer: action.answer };
    await recordEnding(trx, ending, at);
  }
  return settled;
}

/** Takes a no: a person's, or that of the time that is over when there is no request (SV-5). */
export async function settleNo(
  trx: SupervisorTransaction,
  context: SupervisorContext,
  asked: Asked,
  request: AnswerRequest | undefined,
  at: Date,
): Promise<ApprovalRow> {
  return await settle(
    trx,
    context,
    asked,
    {
      stop_reason: request === undefined ? 'approval_expired' : 'human_rejected',
      phase: 'human_approval',
    },
    request === undefined
      ? { state: 'expired', approved: false }
      : { state: 'rejected', approved: false, ...answerColumns(request, request.comment) },
    at,
  );
}

async function settle(
  trx: SupervisorTransaction,
  context: SupervisorContext,
  { approval, decision, acting }: Asked,
  decided: Partial<DecisionRow>,
  answered: Partial<ApprovalRow>,
  at: Date,
): Promise<ApprovalRow> {
  const row: ApprovalRow = { ...approval, ...answered, decided_at: at };
  const settled: DecisionRow = { ...decision, ...decided, settled: true };
  await saveApproval(trx, approval, { ...answered, decided_at: at });
  await saveDecision(trx, callKeyOf(decision), { ...decided, settled: true });
  await tellDecision(trx, acting, settled, 'settled', at, humanAnswerOf(row));
  await announceAnswer(trx, context, acting, row, context.policy.version, at);
  return row;
}

function answerColumns({ person, requestId, digest }: AnswerRequest, comment: string) {
  return {
    decided_by: person.subject,
    comment,
    request_id: requestId,
    request_digest: digest,
  };
}
