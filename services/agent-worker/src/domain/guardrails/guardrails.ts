import { canonicalJson, type JsonObject, sha256Hex } from '@writ/kernel';

/** Limits of the guardrails (AG-6). */
export interface GuardrailLimits {
  /**
   * Maximum number of times that an agent, or each of its parallel branches, continues a truncated answer; 0 disables
   * continuations.
   */
  readonly maxTokensRecoveries: number;
  /** Number of repeats of the same tool calls at which the loop stops. */
  readonly maxRepeatedToolSteps: number;
}

/** Default limits (AG-6). */
export const DEFAULT_GUARDRAILS: GuardrailLimits = {
  maxTokensRecoveries: 2,
  maxRepeatedToolSteps: 3,
};

/**
 * State of the guardrails of an agent or of one of its branches. Plain JSON without content; stored only in the
 * checkpoints of the agent and otherwise rebuilt by each replay (AG-6).
 */
export interface GuardrailCounters {
  readonly recoveries: number;
  readonly repeatedToolSteps: number;
  /** Digest of the last set of tool calls. */
  readonly lastToolStep?: string;
  readonly nearBudget: boolean;
}

/** Initial counters. */
export const FRESH_COUNTERS: GuardrailCounters = {
  recoveries: 0,
  repeatedToolSteps: 0,
  nearBudget: false,
};

/** An observation for the guardrails. */
export type GuardrailObservation =
  | { readonly kind: 'tool_step'; readonly calls: readonly ObservedCall[] }
  /** An answer that was cut off by its token limit. */
  | { readonly kind: 'truncated' }
  /** Whether the meter reported the budget as nearly used up (EM-5). */
  | { readonly kind: 'budget'; readonly near: boolean };

/** A tool call that the model requested. */
export interface ObservedCall {
  readonly tool: string;
  readonly args: JsonObject;
}

/** Names of the guardrails, used as `dimension` of GUARDRAIL_TRIP. */
export type Guardrail = 'max_tokens' | 'stuck' | 'near_budget' | 'middleware';

/** The result of an observation. */
export interface GuardrailOutcome {
  readonly counters: GuardrailCounters;
  /** The guardrail that tripped, if any. */
  readonly tripped?: Guardrail;
}

/**
 * Updates the guardrails with an observation (AG-6). `max_tokens` trips when a truncated answer is to be continued,
 * `stuck` when the loop is to stop, and `near_budget` only once, when the budget is nearly used up for the first time.
 */
export function observe(
  limits: GuardrailLimits,
  counters: GuardrailCounters,
  observation: GuardrailObservation,
): GuardrailOutcome {
  switch (observation.kind) {
    case 'tool_step':
      return observeToolStep(limits, counters, observation.calls);
    case 'truncated':
      if (counters.recoveries >= limits.maxTokensRecoveries) return { counters };
      return {
        counters: { ...counters, recoveries: counters.recoveries + 1 },
        tripped: 'max_tokens',
      };
    case 'budget':
      if (!observation.near || counters.nearBudget) return { counters };
      return { counters: { ...counters, nearBudget: true }, tripped: 'near_budget' };
  }
}

function observeToolStep(
  limits: GuardrailLimits,
  before: GuardrailCounters,
  calls: readonly ObservedCall[],
): GuardrailOutcome {
  const lastToolStep = signatureOf(calls);
  const repeatedToolSteps = lastToolStep === before.lastToolStep ? before.repeatedToolSteps + 1 : 0;
  const counters = { ...before, repeatedToolSteps, lastToolStep };
  const stuck = repeatedToolSteps > 0 && repeatedToolSteps >= limits.maxRepeatedToolSteps;
  return stuck ? { counters, tripped: 'stuck' } : { counters };
}

/** Number of characters of an argument that are compared (AG-6). */
const VALUE_LENGTH = 200;

/**
 * Returns a digest of the tools and arguments of a set of calls, independent of their order; values
 * are truncated to 200 characters (AG-6).
 */
function signatureOf(calls: readonly ObservedCall[]): string {
  const signatures = calls.map(({ tool, args }) => {
    const values = Object.entries(args).map(([name, value]) => [name, valueText(value)]);
    return canonicalJson([tool, Object.fromEntries(values)]);
  });
  return sha256Hex(canonicalJson(signatures.sort()));
}

function valueText(value: JsonObject[string]): string {
  const text = typeof value === 'string' ? value : canonicalJson(value);
  return text.slice(0, VALUE_LENGTH);
}
