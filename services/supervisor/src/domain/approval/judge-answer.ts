import {
  canonicalJson,
  checkArguments,
  InvalidRequestError,
  type JsonObject,
  PermissionDeniedError,
  PreconditionError,
  type ToolAction,
} from '@writ/kernel';
import {
  type Approver,
  checkHumanDecision,
  humanCaps,
  type Policy,
  reviewToFixpoint,
} from '@writ/policy';
import { type ClientToolAction, isCall, type RecordedAction } from '../result/recorded-action.ts';
import { contractOf, type Situation } from '../review/judge.ts';
import type { ReviewedTool } from '../review/reviewed-tool.ts';
import { assertEditable, EDITS_FIELD } from './editable-arguments.ts';

/** The arguments of an edit. */
export interface Edits {
  readonly values: JsonObject;
  /** Whether `values` has only the changed arguments. */
  readonly isPartial: boolean;
}

/** An approving answer. */
export interface ApprovingAnswer {
  /** The action of the approval. */
  readonly action: RecordedAction;
  /** Undefined when the arguments are unchanged. */
  readonly edits: Edits | undefined;
  readonly approver: Approver;
  /** The rule that escalated; empty when none did. */
  readonly ruleId: string;
}

/** The result of an approving answer: the action to execute, or the arguments after revision by policy. */
export type ApprovalCheck =
  | {
      readonly kind: 'allowed';
      readonly action: RecordedAction;
      /** Whether the arguments differ from the arguments of the approval. */
      readonly edited: boolean;
      /** `approved_by_human` or `approved_with_cap:<n>`. */
      readonly basis: string;
    }
  | { readonly kind: 'revised'; readonly args: JsonObject };

/**
 * Applies the current policy and caps to an action that a person approves (SV-5): `escalate` rules and the risk at
 * which the agent requires an approval are skipped, all other rules apply. If a revise rule would change the arguments,
 * the result contains the revised arguments instead of an action to execute.
 * @throws InvalidRequestError INVALID_ARGUMENTS naming the argument, EDITS_REQUIRE_TOOL_CALL, INVALID_REQUESTED_AMOUNT,
 *   INVALID_REQUESTED_AMOUNT_TYPE
 * @throws PreconditionError APPROVAL_REJECTED_BY_POLICY, APPROVAL_ABOVE_CAP, TOOL_REMOVED
 * @throws PermissionDeniedError APPROVAL_CAP_MISSING, APPROVAL_ARGUMENT_LOCKED
 */
export function checkApproval(
  policy: Policy,
  answer: ApprovingAnswer,
  tool: ReviewedTool | undefined,
  situation: Situation,
): ApprovalCheck {
  const action = editedAction(answer);
  const reviewed = (proposed: RecordedAction) =>
    reviewToFixpoint(policy, {
      ...situation,
      action: proposed,
      toolRisk: tool?.risk,
      contractOf: contractOf(tool),
      skipEscalation: true,
    });
  if (isCall(action)) {
    const edited = checkShape(action, tool, 'proposed', answer);
    const before = isCall(answer.action) ? answer.action.args : {};
    assertEditable(policy, { tool: action.name, ruleId: answer.ruleId, before, edited }, (args) => {
      return reviewed({ ...action, args }).action.args;
    });
  }
  const outcome = reviewed(action);
  if (outcome.verdict !== 'approve') throw refused(outcome.decision.reason);
  if (!isCall(action)) {
    return { kind: 'allowed', action, edited: false, basis: 'approved_by_human' };
  }
  const revised = outcome.action.args ?? action.args;
  if (!sameArguments(revised, action.args)) return { kind: 'revised', args: revised };
  const args = checkShape(action, tool, 'executed', answer);
  const basis = checkCaps(policy, action.name, args, answer);
  const edited = isCall(answer.action) && !sameArguments(args, answer.action.args);
  return { kind: 'allowed', action: { ...action, args }, edited, basis };
}

function editedAction({ action, edits }: ApprovingAnswer): RecordedAction {
  if (edits === undefined) return action;
  if (isCall(action)) {
    const { values, isPartial } = edits;
    return { ...action, args: isPartial ? { ...action.args, ...values } : values };
  }
  throw new InvalidRequestError(
    'EDITS_REQUIRE_TOOL_CALL',
    'approve_with_edits requires a tool call; approve or reject this action.',
    { field: EDITS_FIELD },
  );
}

/**
 * Returns the arguments as the tool receives them. The arguments of a client-executed tool are not checked, because
 * only its program knows their schema.
 */
function checkShape(
  { kind, name, args }: ToolAction | ClientToolAction,
  tool: ReviewedTool | undefined,
  phase: 'proposed' | 'executed',
  answer: ApprovingAnswer,
): JsonObject {
  if (kind === 'client_tool') return args;
  if (tool === undefined) {
    throw new PreconditionError(
      'TOOL_REMOVED',
      `Tool ${name} was removed from the tool gateway, so the action cannot be approved; reject it.`,
      { tool: name },
    );
  }
  const checked = checkArguments(tool.contract, args, { phase });
  const [problem] = checked.problems;
  if (problem === undefined) return checked.args;
  throw new InvalidRequestError(
    'INVALID_ARGUMENTS',
    answer.edits === undefined
      ? `Tool ${name} does not accept the arguments: ${problem.message} Approve with edits, or reject the action.`
      : `${EDITS_FIELD}: ${problem.message}`,
    { ...fieldOf(answer), argument: problem.argument },
  );
}

/** Returns the request field that contains the arguments, for the error; empty if the answer has no edits. */
function fieldOf({ edits }: ApprovingAnswer): { readonly field?: string } {
  return edits === undefined ? {} : { field: EDITS_FIELD };
}

function checkCaps(
  policy: Policy,
  tool: string,
  args: JsonObject,
  answer: ApprovingAnswer,
): string {
  const { approver } = answer;
  const check = checkHumanDecision(policy, { tool, args, approver });
  if (check.allowed) return check.basis;
  const { reason, message } = check;
  switch (reason) {
    case 'above_human_cap': {
      // Checks each cap separately, to find the cap that is exceeded.
      const cap = humanCaps(policy, { tool, approver }).find(
        (one) =>
          !checkHumanDecision({ ...policy, humanCaps: [one] }, { tool, args, approver }).allowed,
      );
      throw new PreconditionError('APPROVAL_ABOVE_CAP', message, {
        argument: cap?.argument ?? '',
        cap: String(cap?.max ?? ''),
      });
    }
    case 'no_human_cap':
      throw new PermissionDeniedError('APPROVAL_CAP_MISSING', message, { tool });
    case 'invalid_requested_amount':
      throw new InvalidRequestError('INVALID_REQUESTED_AMOUNT', message, fieldOf(answer));
    case 'invalid_requested_amount_type':
      throw new InvalidRequestError('INVALID_REQUESTED_AMOUNT_TYPE', message, fieldOf(answer));
  }
}

function refused(reason: string): PreconditionError {
  return new PreconditionError(
    'APPROVAL_REJECTED_BY_POLICY',
    `The current policy rejects this action: ${reason}.`,
    { policy_reason: reason },
  );
}

function sameArguments(left: JsonObject, right: JsonObject): boolean {
  return canonicalJson(left) === canonicalJson(right);
}
