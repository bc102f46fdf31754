import type { Amount } from './amount.ts';

/** Token counts of one or more model calls. */
export interface TokenUsage {
  /** Prompt tokens, including cached tokens. */
  readonly input: bigint;
  /** Prompt tokens that the provider read from its cache. */
  readonly cachedInput: bigint;
  /** Prompt tokens that the provider wrote to its cache. */
  readonly cacheWrite: bigint;
  /**
   * Part of `cacheWrite`: tokens that the provider keeps for an hour. Set only for single attempts, for the calculation
   * of their price.
   */
  readonly longCacheWrite?: bigint;
  /** Completion tokens, including reasoning tokens. */
  readonly output: bigint;
  /** Completion tokens spent on reasoning. */
  readonly reasoning: bigint;
}

/** No tokens. */
export const NO_USAGE: TokenUsage = Object.freeze({
  input: 0n,
  cachedInput: 0n,
  cacheWrite: 0n,
  output: 0n,
  reasoning: 0n,
});

/** Actual or estimated usage and cost. */
export interface Spending {
  readonly usage: TokenUsage;
  /** Nano-USD. */
  readonly cost: bigint;
  /** Round trips to a model. */
  readonly turns: bigint;
  readonly estimated: boolean;
  /**
   * Whether the model call failed: the model timed out or was unreachable, the connection was lost, the provider
   * returned an error or an invalid response, or the answer was empty and the caller did not accept it. False for an
   * aborted call.
   */
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

/** Converts spending to an amount in the dimensions of caps; its tokens are prompt plus completion tokens. */
export function amountOf({ usage, cost, turns }: Spending): Amount {
  return { tokens: usage.input + usage.output, cost, turns };
}

/** Adds two usages. */
export function addUsage(a: TokenUsage, b: TokenUsage): TokenUsage {
  return {
    input: a.input + b.input,
    cachedInput: a.cachedInput + b.cachedInput,
    cacheWrite: a.cacheWrite + b.cacheWrite,
    output: a.output + b.output,
    reasoning: a.reasoning + b.reasoning,
  };
}

/** Negates every count of a usage. */
export function negateUsage(usage: TokenUsage): TokenUsage {
  return {
    input: -usage.input,
    cachedInput: -usage.cachedInput,
    cacheWrite: -usage.cacheWrite,
    output: -usage.output,
    reasoning: -usage.reasoning,
  };
}
