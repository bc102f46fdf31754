import {
  InvalidRequestError,
  isJsonObject,
  type JsonObject,
  type PreconditionError,
  parseJsonStrict,
} from '@writ/kernel';
import { pinned, type SupervisorContext } from '../../context.ts';
import { EDITS_FIELD, judgeYes, type YesOutcome } from '../../domain/approval/judge-answer.ts';
import { assertOtherEyes } from '../../domain/approval/other-eyes.ts';
import { activeMsAt } from '../../domain/clock/active-clock.ts';
import { actionFrom } from '../../domain/result/recorded-action.ts';
import type { ReviewedTool } from '../../domain/review/reviewed-tool.ts';
import { clockOf, loadAgent } from '../../store/agent/agents.ts';
import { type ApprovalRow, loadApproval } from '../../store/approval/approvals.ts';
import { rememberRequest } from '../../store/requests.ts';
import { callKeyOf, loadDecision } from '../../store/review/decisions.ts';
import { loadFacts } from '../../store/review/facts.ts';
import type { SupervisorTransaction } from '../../store/supervisor-store.ts';
import { approverOf } from '../../wire/approval.ts';
import { actingOf, assertActs, situationOf } from '../review/review-subject.ts';
import {
  type Answered,
  type AnswerRequest,
  alreadyDecided,
  DECIDE_APPROVAL,
  isRepeat,
} from './answer.ts';
import { type Asked, settleNo, settleYes } from './settle-action.ts';

/**
 * Answers whether an action may go on (SV-5).
 * @throws PreconditionError APPROVAL_DECIDED, RUN_ENDED, HALTED and what judgeYes throws
 * @throws InvalidRequestError REQUEST_ID_REUSED, INVALID_ARGUMENTS
 * @throws PermissionDeniedError FOUR_EYES_REQUIRED
 * @throws UnavailableError TOOL_LIST_UNAVAILABLE: a yes needs the tool's definition (SYS-4)
 */
export async function decideAction(
  context: SupervisorContext,
  request: AnswerRequest,
  approval: ApprovalRow,
): Promise<Answered> {
  if (isRepeat(approval, request)) return { row: approval };
  if (approval.state !== 'pending') throw alreadyDecided(approval);
  const { tool: toolName } = approval;
  const edits = editsOf(request);
  const isYes = request.answer.kind !== 'reject';
  const tool =
    isYes && toolName !== '' ? await context.peers.toolGateway.tool(toolName) : undefined;
  const { answered, refusal } = await context.store.transaction((trx) =>
    decide(trx, context, request, edits, tool),
  );
  if (refusal !== undefined) throw refusal;
  return answered;
}

interface Outcome {
  readonly answered: Answered;
  /** Thrown after the commit: what the refusal says is true from then on. */
  readonly refusal?: PreconditionError;
}

async function decide(
  trx: SupervisorTransaction,
  current: SupervisorContext,
  request: AnswerRequest,
  edits: JsonObject | undefined,
  tool: ReviewedTool | undefined,
): Promise<Outcome> {
  const context = pinned(current);
  const at = context.clock.now();
  const { tenant, subject } = request.person;
  const row = await loadApproval(trx, tenant, request.approvalId);
  if (isRepeat(row, request)) return { answered: { row } };
  if (row.state !== 'pending') throw alreadyDecided(row);
  const decision = await loadDecision(trx, callKeyOf(row));
  const key = { tenant, runId: row.run_id, instance: row.instance };
  const acting = await actingOf(trx, await loadAgent(trx, key));
  await assertActs(trx, acting);
  const asked: Asked = { approval: row, decision, acting };
  if (row.expires_at !== null && row.expires_at <= at) {
    const expired = await settleNo(trx, context, asked, undefined, at);
    return { answered: { row: expired }, refusal: alreadyDecided(expired) };
  }
  if (request.answer.kind !== 'reject') {
    const decider = { subject, runStartedBy: row.run_created_by, tool: row.tool };
    assertOtherEyes(context.policy, decider, context.config.fourEyes);
  }
  let yes: Extract<YesOutcome, { kind: 'go' }> | undefined;
  const facts = await loadFacts(trx, key, context.policy);
  if (request.answer.kind !== 'reject') {
    const action = actionFrom(row.action);
    if (action === undefined) throw alreadyDecided(row);
    const activeMs = activeMsAt(clockOf(acting.agent), at);
    const outcome = judgeYes(
      context.policy,
      { action, edits, approver: approverOf(request.person) },
      tool,
      situationOf(acting, facts, activeMs),
    );
    if (outcome.kind === 'proposal') return { answered: { row, proposal: outcome.args } };
    yes = outcome;
  }
  const { requestId, digest } = request;
  await rememberRequest(trx, { tenant, subject, method: DECIDE_APPROVAL, requestId, digest }, at);
  const settled =
    yes === undefined
      ? await settleNo(trx, context, asked, request, at)
      : await settleYes(trx, context, asked, { request, yes, tool, facts }, at);
  return { answered: { row: settled } };
}

function editsOf({ answer }: AnswerRequest): JsonObject | undefined {
  if (answer.kind !== 'edit') return undefined;
  const value = parseJsonStrict(answer.argumentsJson, { field: EDITS_FIELD });
  if (isJsonObject(value)) return value;
  throw new InvalidRequestError('INVALID_ARGUMENTS', `${EDITS_FIELD} must be a JSON object.`, {
    field: EDITS_FIELD,
  });
}
