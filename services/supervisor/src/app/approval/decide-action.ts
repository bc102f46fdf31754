import {
  InvalidRequestError,
  isJsonObject,
  type PreconditionError,
  parseJsonStrict,
} from '@writ/kernel';
import { type SupervisorContext, type Tx, transact } from '../../context.ts';
import { EDITS_FIELD } from '../../domain/approval/editable-arguments.ts';
import { assertFourEyes } from '../../domain/approval/four-eyes.ts';
import {
  type ApprovalCheck,
  checkApproval,
  type Edits,
} from '../../domain/approval/judge-answer.ts';
import { activeMsAt } from '../../domain/clock/active-clock.ts';
import { haltedError } from '../../domain/halt/halt.ts';
import { actionFrom } from '../../domain/result/recorded-action.ts';
import type { ReviewedTool } from '../../domain/review/reviewed-tool.ts';
import { clockOf, loadAgent } from '../../store/agent/agents.ts';
import { type ApprovalRow, hasExpired, loadApproval } from '../../store/approval/approvals.ts';
import { assertNotHalted } from '../../store/halt/halts.ts';
import { unresumedHalt } from '../../store/halt/lifted-halts.ts';
import { rememberRequest, requestsOf } from '../../store/requests.ts';
import { callKeyOf, loadDecision } from '../../store/review/decisions.ts';
import { loadFacts } from '../../store/review/facts.ts';
import { approverOf } from '../../wire/approval.ts';
import { effectsFor } from '../review/effects-for.ts';
import { assertAlive, situationOf, subjectOf } from '../review/review-subject.ts';
import {
  type Answered,
  type AnswerRequest,
  alreadyDecided,
  DECIDE_APPROVAL,
  isRepeat,
} from './answer-request.ts';
import { type PendingApproval, settleApproved, settleNotApproved } from './settle-action.ts';

/**
 * Approves or rejects an action (SV-5).
 * @throws PreconditionError APPROVAL_DECIDED, RUN_ENDED, HALTED
 * @throws InvalidRequestError REQUEST_ID_REUSED, INVALID_ARGUMENTS and the errors of parseJsonStrict
 * @throws PermissionDeniedError FOUR_EYES_REQUIRED
 * @throws UnavailableError TOOL_LIST_UNAVAILABLE: an approval needs the definition of the tool (SYS-4)
 * @throws the errors of {@link checkApproval}
 */
export async function decideAction(
  context: SupervisorContext,
  request: AnswerRequest,
  approval: ApprovalRow,
): Promise<Answered> {
  if (isRepeat(approval, request)) return { row: approval };
  if (approval.state !== 'pending') throw alreadyDecided(approval);
  const action = actionFrom(approval.action);
  const edits = editsOf(request);
  const isApproving = request.answer.kind !== 'reject';
  const tool =
    isApproving && action?.kind === 'tool'
      ? await context.peers.toolGateway.tool(action.name)
      : undefined;
  const { answered, refusal } = await transact(context, (tx) => decide(tx, request, edits, tool), {
    run: callKeyOf(approval),
    resource: requestsOf(request.person),
  });
  if (refusal !== undefined) throw refusal;
  return answered;
}

interface Outcome {
  readonly answered: Answered;
  /**
   * Thrown after the commit, because the transaction records that the approval has expired and must not be rolled back.
   */
  readonly refusal?: PreconditionError;
}

async function decide(
  tx: Tx,
  request: AnswerRequest,
  edits: Edits | undefined,
  tool: ReviewedTool | undefined,
): Promise<Outcome> {
  const { trx, at, context } = tx;
  const { tenant, subject: approver } = request.person;
  const row = await loadApproval(trx, tenant, request.approvalId);
  if (isRepeat(row, request)) return { answered: { row } };
  if (row.state !== 'pending') throw alreadyDecided(row);
  const decision = await loadDecision(trx, callKeyOf(row));
  const key = { tenant, runId: row.run_id, instance: row.instance };
  const subject = await subjectOf(trx, await loadAgent(trx, key));
  const isApproving = request.answer.kind !== 'reject';
  await assertAlive(trx, subject);
  // While a halt is in force, the action cannot be approved and the approval does not expire. The action can be
  // rejected, because nothing is executed after a rejection (SV-9).
  if (isApproving) await assertNotHalted(trx, key);
  const pending: PendingApproval = { approval: row, decision, subject };
  if (hasExpired(row, at)) {
    const halt = await unresumedHalt(trx, key);
    if (halt === undefined) {
      const expired = await settleNotApproved(tx, pending, undefined);
      return { answered: { row: expired }, refusal: alreadyDecided(expired) };
    }
    if (isApproving) throw haltedError(halt);
  }
  if (isApproving) {
    const decider = { subject: approver, runStartedBy: row.run_created_by, tool: row.tool };
    assertFourEyes(context.policy, decider, context.config);
  }
  let allowed: Extract<ApprovalCheck, { kind: 'allowed' }> | undefined;
  const facts = await loadFacts(trx, key, context.policy);
  if (isApproving) {
    const action = actionFrom(row.action);
    if (action === undefined) throw alreadyDecided(row);
    const activeMs = activeMsAt(clockOf(subject.agent), at);
    const check = checkApproval(
      context.policy,
      { action, edits, approver: approverOf(request.person), ruleId: row.rule_id },
      tool,
      { ...situationOf(subject, facts, activeMs), effects: await effectsFor(tx, subject) },
    );
    if (check.kind === 'revised') return { answered: { row, revisedArguments: check.args } };
    allowed = check;
  }
  const { requestId, digest } = request;
  const recorded = { tenant, subject: approver, method: DECIDE_APPROVAL, requestId, digest };
  await rememberRequest(trx, recorded, at);
  const settled =
    allowed === undefined
      ? await settleNotApproved(tx, pending, request)
      : await settleApproved(tx, pending, { request, allowed, tool, facts });
  return { answered: { row: settled } };
}

function editsOf({ answer }: AnswerRequest): Edits | undefined {
  if (answer.kind !== 'edit') return undefined;
  const { json, isPartial } = answer;
  const values = parseJsonStrict(json, { field: EDITS_FIELD });
  if (isJsonObject(values)) return { values, isPartial };
  throw new InvalidRequestError('INVALID_ARGUMENTS', `${EDITS_FIELD} must be a JSON object.`, {
    field: EDITS_FIELD,
  });
}
