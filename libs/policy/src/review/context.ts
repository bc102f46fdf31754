import { type AgentRef, type ContractLookup, priorityName } from '@writ/kernel';
import type { Facts } from '../facts/fact-types.ts';
import { factValues } from '../facts/fact-values.ts';
import type { BudgetView, EffectsView, Policy, ProposedAction, SupervisionView } from '../types.ts';
import type { MatchSubject } from './match.ts';

/** Complete input of a review; the decision depends on nothing else (SV-3). */
export interface ReviewInput {
  readonly action: ProposedAction;
  readonly facts: Facts;
  /** The proposing agent. */
  readonly agent: AgentRef;
  readonly tenant: string;
  readonly supervision: SupervisionView;
  readonly budget?: BudgetView | undefined;
  /** Default: all counters are zero. */
  readonly effects?: EffectsView | undefined;
  /** The tool's own risk, 0 to 100. */
  readonly toolRisk?: number | undefined;
  /** Risk at or above which an approval becomes an escalation, unless `skipEscalation` is set. Default: no limit. */
  readonly approvalRequiredRisk?: number | undefined;
  /**
   * Whether a human has approved the action: `escalate` rules and `approvalRequiredRisk` are then ignored, and all
   * other rules apply (SV-5).
   */
  readonly skipEscalation?: boolean | undefined;
  /** Argument contracts of the tools; when set, a revised action is validated again (TG-3). */
  readonly contractOf?: ContractLookup | undefined;
}

/** Whether an action calls a tool of the gateway or one that the client executes itself. */
function isCall({ kind }: Pick<ProposedAction, 'kind'>): boolean {
  return kind === 'tool' || kind === 'client_tool';
}

/** Returns the values that `match` is compared with. */
export function subjectOf({ action, agent, tenant, supervision }: ReviewInput): MatchSubject {
  return {
    kind: action.kind,
    tool: isCall(action) ? (action.name ?? '') : '',
    target: action.kind === 'delegation' ? (action.agent ?? '') : '',
    agent: agent.name,
    priority: priorityName(supervision.priority),
    tenant,
  };
}

/**
 * Returns the variables of rule expressions; internal integers are CEL ints, JSON numbers are
 * doubles.
 */
export function ruleContext(policy: Policy, input: ReviewInput): Readonly<Record<string, unknown>> {
  const { action, agent, supervision } = input;
  const depth = BigInt(supervision.depth);
  const priority = BigInt(supervision.priority);
  return {
    action: {
      kind: action.kind,
      tool: action.name ?? '',
      agent: action.agent ?? '',
      task: action.task ?? '',
      answer: action.answer ?? '',
      definition_digest: action.definition_digest ?? '',
    },
    args: action.args ?? {},
    facts: withInts(factValues(policy, input.facts)),
    limits: policy.limits,
    agent: { name: agent.name, instance: agent.instance, depth },
    supervision: {
      run_id: supervision.runId,
      session_id: supervision.sessionId,
      parent: supervision.parentId?.name ?? '',
      depth,
      is_root: supervision.parentId === undefined,
      priority,
      retention: supervision.retention,
    },
    budget: withInts(input.budget ?? {}),
    run: withInts(input.effects ?? NO_EFFECTS),
    priority,
    tenant: input.tenant,
  };
}

/** The counters of a budget of which nothing is used, without limits. */
export const NO_USAGE: BudgetView = { steps_used: 0, tool_calls_used: 0, active_ms: 0 };

/** The counters of a run that has executed no action with an effect. */
export const NO_EFFECTS: EffectsView = {
  effects_done: 0,
  effects_failed: 0,
  effects_refused: 0,
  effects_pending: 0,
};

function withInts(values: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const ints: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(values)) {
    if (value === undefined) continue;
    ints[name] = typeof value === 'number' ? BigInt(Math.trunc(value)) : value;
  }
  return ints;
}
