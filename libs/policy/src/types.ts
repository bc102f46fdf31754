import type { AgentRef, JsonObject, Priority } from '@writ/kernel';
import type { PolicyProblem } from './errors.ts';
import type { Match } from './match.ts';

/** What a review says of an action (SV-1). */
export const VERDICTS = ['approve', 'revise', 'block', 'escalate'] as const;

/** One of {@link VERDICTS}. */
export type Verdict = (typeof VERDICTS)[number];

/** The value of a fact; a number is whole, and of type `cents` when the fact says so. */
export type FactValue = boolean | number | string;

/** A CEL expression that passed its checks. */
export interface Expression {
  /** On one line, for explanations. */
  readonly source: string;
  /** Where it stands in the document, counted from 1. */
  readonly line: number;
  /** Dotted paths below `result` that it reads. */
  readonly resultFields: readonly string[];
  /** @throws Error when the values at hand do not have what it needs */
  evaluate(context: Readonly<Record<string, unknown>>): unknown;
}

/** How a fact changes when a tool's action is approved and when its receipt comes. */
export interface FactUpdate {
  /** Tool name, `*` standing for any characters. */
  readonly tool: string;
  /** Caps only: what an approved action counts for until its receipt or a void (SV-3). */
  readonly count: Expression | undefined;
  /** Whether a receipt of success changes the fact; left out = it does. */
  readonly when: Expression | undefined;
  /** Caps: what a receipt of success counts for, left out = what was counted. Gates: the new value. */
  readonly value: Expression | undefined;
  /** Caps only: whether a call that failed inside the tool still counts; it may have had its effect. */
  readonly failureCounts: boolean;
  /** Dotted paths of the tool's result that the expressions read. */
  readonly resultFields: readonly string[];
}

/** A fact of a run, as the policy declares it (SV-3). */
export interface Fact {
  readonly name: string;
  /** A cap counts an approved action at once; a gate is changed by receipts alone. */
  readonly kind: 'cap' | 'gate';
  readonly type: 'bool' | 'int' | 'string' | 'cents';
  readonly initial: FactValue;
  readonly updates: readonly FactUpdate[];
}

/** What a revise rule does to one argument. */
export type Adjustment = { readonly argument: string } & (
  | { readonly how: 'value'; readonly literal: string | number | boolean }
  | { readonly how: 'fill'; readonly literal: string | number | boolean }
  | { readonly how: 'cel'; readonly expression: Expression }
  | {
      readonly how: 'clamp';
      readonly least: Expression | undefined;
      readonly most: Expression | undefined;
    }
);

/** One rule; rules are tried in order and the first that matches decides (SV-3). */
export interface Rule {
  readonly id: string;
  readonly line: number;
  readonly match: Match;
  readonly when: Expression | undefined;
  readonly decide: Verdict;
  /** May hold `{tool}`, `{kind}`, `{agent}` and `{target}`. */
  readonly reason: string;
  /** 0 to 100. */
  readonly risk: number;
  readonly adjustments: readonly Adjustment[];
}

/** How high a person may go when approving (SV-5). */
export interface HumanCap {
  readonly tool: string;
  readonly argument: string;
  /** In the argument's own unit. */
  readonly max: number;
  /** `usd`: compared in whole cents, the argument rounded up. `none`: compared as it is. */
  readonly unit: 'usd' | 'none';
  /** Which approvers it binds, `*` standing for any characters. */
  readonly approver: string;
  readonly role: string;
}

/** A policy that was read and checked; immutable, so a review never sees half of a change. */
export interface Policy {
  readonly name: string;
  readonly file: string;
  /** SHA-256 of the document's text, in hex; on every decision (SV-3). */
  readonly version: string;
  readonly about: string;
  /** Named constants as CEL sees them. */
  readonly limits: Readonly<Record<string, unknown>>;
  readonly facts: readonly Fact[];
  readonly rules: readonly Rule[];
  readonly humanCaps: readonly HumanCap[];
  /** Tools whose calls nobody approves in a run of their own; `*` is every action, tool or not. */
  readonly fourEyes: readonly string[];
  /** What is allowed but probably a mistake, such as a tool that no gateway knows. */
  readonly warnings: readonly PolicyProblem[];
}

/**
 * An action as proposed; a kernel WorkerAction fits. A `tool` has name and args, a `final` an
 * answer, a `delegation` agent and task; any other kind is for the rules to refuse.
 */
export interface ProposedAction {
  readonly kind: string;
  /** The tool's name. */
  readonly name?: string | undefined;
  readonly args?: JsonObject | undefined;
  readonly answer?: string | undefined;
  /** The agent that a delegation goes to. */
  readonly agent?: string | undefined;
  readonly task?: string | undefined;
}

/** Where the acting agent stands in its run; a kernel Supervision fits. */
export interface SupervisionView {
  readonly runId: string;
  readonly sessionId: string;
  /** Absent at the root. */
  readonly parentId?: AgentRef | undefined;
  readonly depth: number;
  readonly priority: Priority;
  readonly retention: string;
}

/** Counters and limits that rules may read; a limit that is left out is unlimited. */
export const BUDGET_FIELDS = [
  'steps_used',
  'max_steps',
  'tool_calls_used',
  'max_tool_calls',
  'tokens_used',
  'max_tokens',
  'turns_used',
  'max_turns',
  'cost_used_nano_usd',
  'max_cost_nano_usd',
  'active_ms',
  'max_active_ms',
] as const;

/** What rules see as `budget`. */
export type BudgetView = {
  readonly [K in (typeof BUDGET_FIELDS)[number]]?: number | bigint | undefined;
};

/** JSON Schemas of tool arguments by tool name. */
export type ToolSchemas = Readonly<Record<string, JsonObject>>;
