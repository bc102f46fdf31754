import type { AgentRef, JsonObject, Priority } from '@writ/kernel';
import type { PolicyProblem } from './errors.ts';
import type { Match } from './review/match.ts';

/** The verdicts that a rule can give (SV-1). */
export const RULE_VERDICTS = ['approve', 'revise', 'block', 'escalate'] as const;

/** One of {@link RULE_VERDICTS}. */
export type RuleVerdict = (typeof RULE_VERDICTS)[number];

/** The value of a fact; numbers are integers, and whole cents for a fact of the type `cents`. */
export type FactValue = boolean | number | string;

/** A CEL expression that passed its checks. */
export interface Expression {
  /** On one line, for explanations. */
  readonly source: string;
  /** Line in the document, counted from 1. */
  readonly line: number;
  /** Dotted paths below `result` that the expression reads. */
  readonly resultFields: readonly string[];
  /** The variables that the expression reads. */
  readonly variables: readonly string[];
  /** @throws Error when a value that the expression reads is missing or has the wrong type */
  evaluate(context: Readonly<Record<string, unknown>>): unknown;
}

/** How an approval and a receipt of a tool change a fact. */
export interface FactUpdate {
  /** Tool name; `*` matches any characters. */
  readonly tool: string;
  /**
   * Caps only: the amount that an approved action adds to the fact until the call has a receipt with a known outcome or
   * its writ is voided (SV-3).
   */
  readonly count: Expression | undefined;
  /** Caps: whether a succeeded call counts. Gates: whether it changes the fact. Absent = true. */
  readonly when: Expression | undefined;
  /**
   * Caps: the count after a succeeded receipt; absent = the count at approval. Gates: the new
   * value.
   */
  readonly value: Expression | undefined;
  /**
   * Caps only: whether a call that failed inside the tool keeps its count, because it may have had an effect before it
   * failed.
   */
  readonly failureCounts: boolean;
  /** Dotted paths of the tool's result that the expressions read. */
  readonly resultFields: readonly string[];
}

/** A fact of a run as declared by the policy (SV-3). */
export interface Fact {
  readonly name: string;
  /** A cap counts an approved action immediately; a gate changes only by receipts. */
  readonly kind: 'cap' | 'gate';
  readonly type: 'bool' | 'int' | 'string' | 'cents';
  readonly initial: FactValue;
  readonly updates: readonly FactUpdate[];
}

/** Change of one argument by a revise rule. */
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

/** One rule; rules are evaluated in order and the first match decides (SV-3). */
export interface Rule {
  readonly id: string;
  readonly line: number;
  readonly match: Match;
  readonly when: Expression | undefined;
  readonly decide: RuleVerdict;
  /** Can end in `:{tool}`, `:{kind}`, `:{agent}` or `:{target}`. */
  readonly reason: string;
  /** 0 to 100. */
  readonly risk: number;
  readonly adjustments: readonly Adjustment[];
  /**
   * Arguments that an approver may change when this rule escalates. If undefined, the arguments that `human.editable`
   * lists for the tool apply; without such a list, the arguments with a cap.
   */
  readonly editable: readonly string[] | undefined;
}

/** Limit of approvals by humans (SV-5). */
export interface HumanCap {
  readonly tool: string;
  readonly argument: string;
  /** In the argument's own unit. */
  readonly max: number;
  /** `usd`: the argument must be an amount in USD with at most two decimals. `none`: compared unchanged. */
  readonly unit: 'usd' | 'none';
  /** Approvers that the cap applies to; `*` matches any characters. */
  readonly approver: string;
  readonly role: string;
}

/** The arguments of a tool that an approver may change (SV-5). */
export interface EditableArguments {
  /** Tool name; `*` matches any characters. */
  readonly tool: string;
  readonly arguments: readonly string[];
}

/** Which results of a tool count as success (SV-8). */
export interface OutcomeRule {
  /** Tool name; `*` matches any characters. */
  readonly tool: string;
  readonly okWhen: Expression;
}

/** What approvers see besides the action (SV-5, PE-1). */
export interface EvidenceRule {
  readonly goal: boolean;
  /** Whether the earlier steps of the run are shown: actions and decisions. */
  readonly history: boolean;
  /** Names of facts. */
  readonly facts: readonly string[];
  /** Patterns of the tools whose results are shown. */
  readonly observations: readonly string[];
}

/** A loaded and checked policy; immutable, so a review never sees a partial change. */
export interface Policy {
  readonly name: string;
  readonly file: string;
  /** SHA-256 of the document text in hex, recorded in every decision (SV-3). */
  readonly version: string;
  readonly about: string;
  /** Named constants as CEL values. */
  readonly limits: Readonly<Record<string, unknown>>;
  readonly facts: readonly Fact[];
  /**
   * The first rule whose tool matches decides the outcome. If no rule matches, the fields `error` and `status` of the
   * result decide.
   */
  readonly outcomes: readonly OutcomeRule[];
  readonly rules: readonly Rule[];
  /** Whether a rule reads `run`, the effect counters of the run. */
  readonly readsEffects: boolean;
  readonly humanCaps: readonly HumanCap[];
  /**
   * Arguments that approvers may change, by tool. For a tool without a matching entry, these are the arguments with a
   * cap.
   */
  readonly editable: readonly EditableArguments[];
  readonly evidence: EvidenceRule;
  /**
   * Tools whose calls require an approver other than the user who started the run; `*` is every
   * action. Undefined when the policy does not set `four_eyes`.
   */
  readonly fourEyes: readonly string[] | undefined;
  /** Valid but suspicious content, such as a tool that no gateway provides. */
  readonly warnings: readonly PolicyProblem[];
}

/**
 * An action as proposed; a kernel WorkerAction is assignable to it. A `tool` has name and args, a `client_tool` also a
 * definition digest, a `final` an answer, a `delegation` agent and task. Rules also match actions of other kinds, which
 * have none of these fields.
 */
export interface ProposedAction {
  readonly kind: string;
  /** The tool's name. */
  readonly name?: string | undefined;
  readonly args?: JsonObject | undefined;
  readonly answer?: string | undefined;
  /** Target agent of a delegation. */
  readonly agent?: string | undefined;
  readonly task?: string | undefined;
  /** Digest of the definition of a tool that the client executes itself, as reported by the client. */
  readonly definition_digest?: string | undefined;
}

/** Position of the proposing agent in its run; a kernel Supervision is assignable to it. */
export interface SupervisionView {
  readonly runId: string;
  readonly sessionId: string;
  /** Absent at the root. */
  readonly parentId?: AgentRef | undefined;
  readonly depth: number;
  readonly priority: Priority;
  readonly retention: string;
}

/**
 * Counters and limits that rules can read; an absent limit is unlimited. The used tokens, turns and cost are not
 * among them, because only the meter has them and a review does not request them.
 */
export const BUDGET_FIELDS = [
  'steps_used',
  'max_steps',
  'tool_calls_used',
  'max_tool_calls',
  'max_tokens',
  'max_turns',
  'max_cost_nano_usd',
  'active_ms',
  'max_active_ms',
] as const;

/** The variable `budget` of rules. */
export type BudgetView = {
  readonly [K in (typeof BUDGET_FIELDS)[number]]?: number | bigint | undefined;
};

/**
 * Counters of the actions of a run that have an effect: calls of tools that are not read-only, and delegations. An
 * action is `pending` until its approval is decided or its agent ends; a tool call is `pending` until it also has a
 * receipt with a known outcome or its writ is voided, and a delegation until its child is set up or refused, or its agent
 * ends before that.
 */
export const EFFECT_FIELDS = [
  'effects_done',
  'effects_failed',
  'effects_refused',
  'effects_pending',
] as const;

/** The variable `run` of rules. */
export type EffectsView = { readonly [K in (typeof EFFECT_FIELDS)[number]]: number };

/** JSON Schemas of tool arguments by tool name. */
export type ToolSchemas = Readonly<Record<string, JsonObject>>;
