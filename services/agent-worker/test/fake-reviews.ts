import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { ActionSchema, ExecutedFrom } from '@writ/contracts/writ/review/v1/action_pb';
import {
  type Decision,
  DecisionSchema,
  HumanApprovalSchema,
  Verdict,
} from '@writ/contracts/writ/review/v1/decision_pb';
import type { ReviewActionRequest } from '@writ/contracts/writ/review/v1/review_service_pb';
import { InvalidRequestError, isJsonObject, type JsonObject, NotFoundError } from '@writ/kernel';
import { actionMessage, type RefundAction, ruleOn } from './refund-rules.ts';

interface Recorded {
  readonly proposal: string;
  readonly action: RefundAction | undefined;
  readonly decision: Decision;
}

const VERDICTS = {
  approve: Verdict.APPROVE,
  block: Verdict.BLOCK,
  escalate: Verdict.ESCALATE,
  invalid: Verdict.INVALID,
} as const;

/** A decision that {@link FakeReviews.review} has made. */
interface Made {
  readonly verdict: keyof typeof VERDICTS;
  readonly action?: RefundAction | undefined;
}

/**
 * Decides proposals by the refund desk's rules, idempotently, as the contract of the supervisor requires. A `key` is
 * what `agentKey` returns for the agent.
 */
export class FakeReviews {
  /** Overrides the verdict on proposals. */
  rule: typeof ruleOn = ruleOn;
  readonly #decisions = new Map<string, Recorded>();
  readonly #executed: string[] = [];
  #writs = 0;

  /**
   * Decides a proposal, and calls `onMade` unless the proposal is a repeat; returns the decision.
   * @throws InvalidRequestError CALL_ID_REUSED
   */
  review(
    key: string,
    { callId, proposal }: ReviewActionRequest,
    onMade: (made: Made) => void,
  ): Decision {
    const text = JSON.stringify([proposal.case, proposal.value], (name, value) =>
      name === '$typeName' ? undefined : value,
    );
    const known = this.#decisions.get(`${key}/${callId}`);
    if (known !== undefined) {
      if (known.proposal !== text) throw reused(callId);
      return this.currentDecision(key, callId);
    }
    const { verdict, reason, action } = this.rule(rawTextOf(proposal), this.#executed);
    if (verdict === 'approve' && action?.kind === 'tool') this.#executed.push(action.name);
    const decision = create(DecisionSchema, {
      decisionId: `dec-${callId}`,
      callId,
      verdict: VERDICTS[verdict],
      reason,
      settled: verdict !== 'escalate',
      runEnded: verdict === 'approve' && action?.kind === 'final',
    });
    if (action !== undefined) decision.action = messageOf(action);
    if (verdict === 'approve' && action !== undefined) {
      decision.executedAction = messageOf(action);
      decision.executedFrom = ExecutedFrom.ORIGINAL;
    }
    if (verdict === 'escalate') decision.approvalId = 'apr-1';
    if (verdict === 'block') decision.stopReason = `supervisor_block:${reason}`;
    if (verdict === 'invalid') decision.stopReason = `invalid_action:${reason}`;
    this.#decisions.set(`${key}/${callId}`, { proposal: text, action, decision });
    onMade({ verdict, action });
    return this.currentDecision(key, callId);
  }

  /** Decides an escalated action as a human; returns the decision to signal. */
  decide(key: string, callId: string, answer: 'reject' | { readonly args: JsonObject }): Decision {
    const recorded = this.#recorded(key, callId);
    const { action } = recorded;
    const approved = answer !== 'reject' && action?.kind === 'tool';
    const { decision } = recorded;
    decision.settled = true;
    decision.humanApproval = create(HumanApprovalSchema, {
      approvalId: 'apr-1',
      approved,
      comment: approved ? '' : 'no',
      basis: approved ? 'approved_with_cap:800' : '',
      decidedBy: 'anna',
    });
    if (approved) {
      const args = { ...action.args, ...answer.args };
      decision.executedAction = messageOf({ ...action, args });
      decision.executedFrom = ExecutedFrom.HUMAN_REVISED;
    } else {
      decision.stopReason = 'human_rejected';
    }
    return this.currentDecision(key, callId);
  }

  /** Returns the decision, with a new writ if it is final and approves a tool call. */
  currentDecision(key: string, callId: string): Decision {
    const recorded = this.#recorded(key, callId);
    const { executedAction, settled } = recorded.decision;
    if (executedAction?.kind.case !== 'tool' || !settled) return recorded.decision;
    this.#writs += 1;
    return create(DecisionSchema, {
      ...recorded.decision,
      writ: `writ-${callId}-${this.#writs}`,
      writExpireTime: timestampFromMs(Date.now() + 60_000),
    });
  }

  #recorded(key: string, callId: string): Recorded {
    const recorded = this.#decisions.get(`${key}/${callId}`);
    if (recorded !== undefined) return recorded;
    throw new NotFoundError('DECISION_NOT_FOUND', `Nothing was proposed as ${callId}.`);
  }
}

function rawTextOf(proposal: ReviewActionRequest['proposal']): string {
  if (proposal.case === 'rawText') return proposal.value;
  const kind = proposal.value?.kind;
  if (kind?.case === 'tool') {
    const { tool: name, argumentsJson } = kind.value;
    return JSON.stringify({ kind: 'tool', name, args: argumentsOf(argumentsJson) });
  }
  return JSON.stringify({ kind: 'final', answer: kind?.case === 'final' ? kind.value.answer : '' });
}

function argumentsOf(text: string): JsonObject {
  const value: unknown = JSON.parse(text);
  return isJsonObject(value as JsonObject) ? (value as JsonObject) : {};
}

/** The error for a call_id that is reused with another request. */
export function reused(callId: string): InvalidRequestError {
  return new InvalidRequestError('CALL_ID_REUSED', `${callId} was used for another request.`, {
    field: 'call_id',
    call_id: callId,
  });
}

function messageOf(action: RefundAction) {
  return create(ActionSchema, actionMessage(action));
}
