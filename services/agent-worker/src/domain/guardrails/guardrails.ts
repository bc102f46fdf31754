import { canonicalJson, type JsonObject, sha256Hex } from '@writ/kernel';

/** When a loop counts as gone wrong (AG-6). */
export interface GuardrailLimits {
  /** How often a truncated answer is continued; 0 turns it off. */
  readonly maxTokensRecoveries: number;
  /** At how many repeats of the same set of tool calls the loop stops. */
  readonly maxRepeatedToolSteps: number;
}

/** The limits of a manifest that names none (AG-6). */
export const DEFAULT_GUARDRAILS: GuardrailLimits = {
  maxTokensRecoveries: 2,
  maxRepeatedToolSteps: 3,
};

/** What the guardrails of one agent remember: plain JSON without content, kept with its run (AG-6). */
export interface GuardrailCounters {
  readonly recoveries: number;
  readonly repeatedToolSteps: number;
  /** Digest of the last set of tool calls. */
  readonly lastToolStep?: string;
  readonly nearBudget: boolean;
}

/** The counters of an agent that has done nothing yet. */
export const FRESH_COUNTERS: GuardrailCounters = {
  recoveries: 0,
  repeatedToolSteps: 0,
  nearBudget: false,
};

/** What the guardrails are shown. */
export type GuardrailObservation =
  | { readonly kind: 'tool_step'; readonly calls: readonly ObservedCall[] }
  /** An answer that its token limit cut off. */
  | { readonly kind: 'truncated' }
  /** What the meter said of the tab after a model call (EM-5). */
  | { readonly kind: 'budget'; readonly near: boolean };

/** A tool call as the model asked for it. */
export interface ObservedCall {
  readonly tool: string;
  readonly args: JsonObject;
}

/** Names of the guardrails, as GUARDRAIL_TRIP's `dimension` carries them. */
export type Guardrail = 'max_tokens' | 'stuck' | 'near_budget';

/** What an observation leads to. */
export interface GuardrailOutcome {
  readonly counters: GuardrailCounters;
  /** The guardrail that tripped at this observation. */
  readonly tripped?: Guardrail;
}

/**
 * The guardrails as a reducer (AG-6). `max_tokens` trips when a truncated answer shall be continued,
 * `stuck` when the loop shall stop, `near_budget` once, when the budget first counts as near.
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

/** How much of an argument's value tells two calls apart (AG-6). */
const VALUE_LENGTH = 200;

/** The same for the same set of calls in any order: tools and arguments, values cut at 200 characters (AG-6). */
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
