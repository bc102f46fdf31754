import { type AgentRef, type ContractLookup, priorityName } from '@writ/kernel';
import type { Facts } from './fact-types.ts';
import { factValues } from './facts.ts';
import type { MatchSubject } from './match.ts';
import type { BudgetView, Policy, ProposedAction, SupervisionView } from './types.ts';

/** Everything a review looks at; nothing else decides (SV-3). */
export interface ReviewInput {
  readonly action: ProposedAction;
  readonly facts: Facts;
  /** The acting agent. */
  readonly agent: AgentRef;
  readonly tenant: string;
  readonly supervision: SupervisionView;
  readonly budget?: BudgetView | undefined;
  /** The tool's own risk, 0 to 100. */
  readonly toolRisk?: number | undefined;
  /** From this risk on an approval becomes an escalation, whatever the rules say of the tool. */
  readonly approvalRequiredRisk?: number | undefined;
  /** A person has said yes: `escalate` is passed over, everything else holds (SV-5). */
  readonly skipEscalation?: boolean | undefined;
  /** The tools' argument contracts; given, a revised action is checked again (TG-3). */
  readonly contractOf?: ContractLookup | undefined;
}

/** What matches are held against. */
export function subjectOf({ action, agent, tenant, supervision }: ReviewInput): MatchSubject {
  return {
    kind: action.kind,
    tool: action.kind === 'tool' ? (action.name ?? '') : '',
    target: action.kind === 'delegation' ? (action.agent ?? '') : '',
    agent: agent.name,
    priority: priorityName(supervision.priority),
    tenant,
  };
}

/** The variables of rule expressions; whole numbers of ours are CEL ints, JSON numbers doubles. */
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
    priority,
    tenant: input.tenant,
  };
}

function withInts(values: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const ints: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(values)) {
    if (value === undefined) continue;
    ints[name] = typeof value === 'number' ? BigInt(Math.trunc(value)) : value;
  }
  return ints;
}
