import {
  argumentStopReason,
  checkArguments,
  type ExecutedFrom,
  type Phase,
  type ToolAction,
  type Verdict,
} from '@writ/kernel';
import {
  type Policy,
  type ProposedAction,
  type ReviewInput,
  type ReviewOutcome,
  reviewToFixpoint,
} from '@writ/policy';
import { isCall, type RecordedAction } from '../result/recorded-action.ts';
import type { LimitReached } from './check-limits.ts';
import { gatewayAllows, type ReviewedTool, toContractRisk } from './reviewed-tool.ts';

/** The result of judging a proposal. */
export interface Judgement {
  /**
   * The verdict to report: `invalid` or `block` if the final action is invalid or blocked; otherwise `escalate` if a
   * pass escalated, else `revise` if a pass revised, else `approve` (SV-7).
   */
  readonly verdict: Verdict;
  readonly reason: string;
  /** Empty when no rule decided. */
  readonly ruleId: string;
  /** 0 to 1. */
  readonly risk: number;
  /** Undefined when the proposal was not parsed, or is not a valid action. */
  readonly action: RecordedAction | undefined;
  /** Undefined when policy changed nothing. */
  readonly revisedAction: RecordedAction | undefined;
  readonly next: NextStep;
  /** Every pass over the rules, for the audit record. */
  readonly passes: readonly {
    readonly verdict: string;
    readonly rule: string;
    readonly reason: string;
  }[];
}

/** The next step: the action is executed, an approval is opened, or the agent stops. */
export type NextStep =
  | { readonly kind: 'go'; readonly action: RecordedAction; readonly from: ExecutedFrom }
  | {
      readonly kind: 'ask';
      readonly action: RecordedAction;
      readonly reason: string;
      readonly ruleId: string;
      readonly risk: number;
    }
  | { readonly kind: 'stop'; readonly stopReason: string; readonly phase: Phase | undefined };

/** The input of a review besides the action. */
export type Situation = Omit<ReviewInput, 'action' | 'toolRisk' | 'contractOf' | 'skipEscalation'>;

const INVALID = 'invalid_action:';

/**
 * Applies the policy to an action repeatedly until the policy no longer changes the action; too many revisions block
 * the action (SV-1, SV-10).
 */
export function judge(
  policy: Policy,
  action: RecordedAction,
  tool: ReviewedTool | undefined,
  situation: Situation,
): Judgement {
  const outcome = reviewToFixpoint(policy, {
    ...situation,
    action,
    toolRisk: tool?.risk,
    contractOf: contractOf(tool),
  });
  const final = recorded(outcome.action, action);
  const { decision } = outcome.shown;
  const next = nextStep(outcome, final, tool);
  const shown = {
    action,
    revisedAction: outcome.revised ? final : undefined,
    passes: outcome.passes.map((pass) => ({
      verdict: pass.decision.verdict,
      rule: pass.decision.ruleId ?? '',
      reason: pass.decision.reason,
    })),
    next,
  };
  if (next.kind === 'stop' && next.stopReason.startsWith(INVALID)) {
    return { ...shown, ...unruled('invalid', next.stopReason.slice(INVALID.length)) };
  }
  return {
    ...shown,
    verdict: decision.verdict,
    reason: decision.reason,
    ruleId: decision.ruleId ?? '',
    risk: toContractRisk(decision.risk),
  };
}

/** The judgement on an invalid proposal (SV-2). */
export function judgeInvalid(stopReason: string): Judgement {
  return {
    ...unruled('invalid', stopReason.slice(INVALID.length)),
    ...NO_ACTION,
    next: { kind: 'stop', stopReason, phase: 'worker' },
  };
}

/** The judgement on a proposal after a limit was reached; the proposal is not parsed. */
export function judgeLate(limit: LimitReached): Judgement {
  return {
    ...unruled('block', limit),
    ...NO_ACTION,
    // The worker reports whether the agent stopped at a step or while composing.
    next: { kind: 'stop', stopReason: limit, phase: undefined },
  };
}

/** The fields of the calling agent that allowlists check. */
interface CallingAgent {
  /** Name of its manifest. */
  readonly agentName: string;
  readonly tenant: string;
  /** The tools that it may call. */
  readonly tools: readonly string[];
}

/**
 * Blocks a call of a tool outside the agent's list or denied by the allowlists of the gateway, before a person is asked
 * or a writ is signed (TG-2, SV-1). A block by the policy stays as it is.
 */
export function judgeAllowed(
  judgement: Judgement,
  tool: ReviewedTool | undefined,
  agent: CallingAgent,
): Judgement {
  const { next } = judgement;
  if (next.kind === 'stop' || next.action.kind !== 'tool') return judgement;
  const { name } = next.action;
  if (agent.tools.includes(name) && (tool === undefined || gatewayAllows(tool, agent))) {
    return judgement;
  }
  const stopReason = `tool_denied:${name}`;
  return {
    ...judgement,
    ...unruled('block', stopReason),
    risk: judgement.risk,
    next: { kind: 'stop', stopReason, phase: 'supervisor' },
  };
}

/** Looks up the contract of the one tool in question: revisions change only its arguments. */
export function contractOf(tool: ReviewedTool | undefined): NonNullable<ReviewInput['contractOf']> {
  return (name) => (name === tool?.name ? tool.contract : undefined);
}

/** A policy action in its recorded form. */
function recorded(action: ProposedAction, proposed: RecordedAction): RecordedAction {
  // Rules change only the arguments of a call.
  return isCall(proposed) ? { ...proposed, args: action.args ?? proposed.args } : proposed;
}

const NO_ACTION = { action: undefined, revisedAction: undefined, passes: [] } as const;

function unruled(verdict: Verdict, reason: string) {
  return { verdict, reason, ruleId: '', risk: 0 };
}

function nextStep(
  { verdict, decision, revised }: ReviewOutcome,
  action: RecordedAction,
  tool: ReviewedTool | undefined,
): NextStep {
  switch (verdict) {
    case 'block':
      return {
        kind: 'stop',
        stopReason: `supervisor_block:${decision.reason}`,
        phase: 'supervisor',
      };
    case 'escalate': {
      const { reason, ruleId = '', risk } = decision;
      return { kind: 'ask', action, reason, ruleId, risk: toContractRisk(risk) };
    }
    case 'approve': {
      const from = revised ? 'supervisor_revised' : 'original';
      return action.kind === 'tool' ? execution(action, tool, from) : { kind: 'go', action, from };
    }
  }
}

/** Checks the arguments for execution: a fillable argument may be missing in a proposal, not in a call (TG-3). */
function execution(
  action: ToolAction,
  tool: ReviewedTool | undefined,
  from: ExecutedFrom,
): NextStep {
  const { name } = action;
  const checked = tool && checkArguments(tool.contract, action.args, { phase: 'executed' });
  if (checked === undefined) {
    return { kind: 'stop', stopReason: `${INVALID}unknown_tool:${name}`, phase: 'worker' };
  }
  const [problem] = checked.problems;
  if (problem === undefined) return { kind: 'go', action: { ...action, args: checked.args }, from };
  return { kind: 'stop', stopReason: argumentStopReason(name, problem), phase: 'worker' };
}
