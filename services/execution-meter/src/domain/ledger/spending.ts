import type { Amount } from './amount.ts';

/** Tokens of one model call, or of many. */
export interface TokenUsage {
  /** Prompt tokens, cached ones included. */
  readonly input: bigint;
  /** Prompt tokens that the provider read from its cache. */
  readonly cachedInput: bigint;
  /** Completion tokens, reasoning included. */
  readonly output: bigint;
  /** Completion tokens spent on reasoning. */
  readonly reasoning: bigint;
}

/** No tokens. */
export const NO_USAGE: TokenUsage = Object.freeze({
  input: 0n,
  cachedInput: 0n,
  output: 0n,
  reasoning: 0n,
});

/** What something cost in fact, or by estimate. */
export interface Spending {
  readonly usage: TokenUsage;
  /** Nano-USD. */
  readonly cost: bigint;
  /** Round trips to a model. */
  readonly turns: bigint;
  readonly estimated: boolean;
  /** A model call ended with it, without an answer. */
  readonly failed: boolean;
}

/** Nothing spent. */
export const NO_SPENDING: Spending = Object.freeze({
  usage: NO_USAGE,
  cost: 0n,
  turns: 0n,
  estimated: false,
  failed: false,
});

/** A spending as caps see it: prompt and completion tokens together. */
export function amountOf({ usage, cost, turns }: Spending): Amount {
  return { tokens: usage.input + usage.output, cost, turns };
}

/** The sum of two usages. */
export function addUsage(a: TokenUsage, b: TokenUsage): TokenUsage {
  return {
    input: a.input + b.input,
    cachedInput: a.cachedInput + b.cachedInput,
    output: a.output + b.output,
    reasoning: a.reasoning + b.reasoning,
  };
}

/** The same usage with every sign turned. */
export function negateUsage(usage: TokenUsage): TokenUsage {
  return {
    input: -usage.input,
    cachedInput: -usage.cachedInput,
    output: -usage.output,
    reasoning: -usage.reasoning,
  };
}
