import { PreconditionError } from '@writ/kernel';
import type { ModelEntry } from '../catalog/catalog.ts';
import {
  affordableOutput,
  costOf,
  pricesWith,
  type TokenPrices,
  worstCost,
} from '../catalog/prices.ts';
import type { CacheWrites } from '../chat/chat.ts';
import type { Balance } from '../ledger/balance.ts';
import { remainingBudget } from '../ledger/balance.ts';
import type { Hold } from '../ledger/entry.ts';
import { NO_USAGE, type Spending, type TokenUsage } from '../ledger/spending.ts';

/** Upper bounds of one attempt of a call. */
export interface CallPlan {
  readonly model: ModelEntry;
  /** Undefined when the model has no known price. */
  readonly prices: TokenPrices | undefined;
  readonly cacheWrites: CacheWrites;
  /** Upper bound of the prompt tokens. */
  readonly promptTokens: bigint;
  /** Whether the prompt tokens were counted; otherwise they are a loose upper bound. */
  readonly counted: boolean;
  /** Requested output tokens. */
  readonly outputTokens: bigint;
}

/** Returns the hold of an attempt with `outputTokens` (EM-3). */
export function holdFor(
  { prices, cacheWrites, promptTokens }: CallPlan,
  outputTokens: bigint,
): Hold {
  return {
    usage: { ...NO_USAGE, input: promptTokens, output: outputTokens },
    cost:
      prices === undefined
        ? 0n
        : worstCost(pricesWith(prices, cacheWrites), promptTokens, outputTokens),
    turns: 1n,
  };
}

/**
 * Returns how many of the requested output tokens fit the budgets of all levels; zero when no turn remains or the
 * prompt alone exceeds a budget.
 */
export function fittingOutput(levels: readonly Balance[], plan: CallPlan): bigint {
  const { prices, cacheWrites, promptTokens, outputTokens } = plan;
  const remaining = remainingBudget(levels);
  if (remaining.turns === 0n) return 0n;
  let fits = outputTokens;
  if (remaining.tokens !== undefined) fits = least(fits, remaining.tokens - promptTokens);
  if (remaining.cost !== undefined && prices !== undefined) {
    const payable = pricesWith(prices, cacheWrites);
    fits = least(fits, affordableOutput(payable, promptTokens, remaining.cost) ?? fits);
  }
  return fits > 0n ? fits : 0n;
}

/**
 * Rejects a call of a model without a known price when a cost cap applies (EM-4).
 * @throws PreconditionError PRICE_MISSING
 */
export function requirePrice(levels: readonly Balance[], { prices, model }: CallPlan): void {
  const capped = levels.find(({ caps }) => caps.cost !== undefined);
  if (capped === undefined || prices !== undefined) return;
  throw new PreconditionError(
    'PRICE_MISSING',
    `Model ${model.alias} has no known price, but a cost cap applies (${capped.level}). Set prices for it in models.yaml.`,
    { model: model.alias, level: capped.level },
  );
}

/** Returns the spending of one round trip with this usage at the prices of the plan. */
export function spendingFor({ prices }: CallPlan, usage: TokenUsage, estimated: boolean): Spending {
  return {
    usage,
    cost: prices === undefined ? 0n : costOf(prices, usage),
    turns: 1n,
    estimated,
    failed: false,
  };
}

function least(a: bigint, b: bigint): bigint {
  if (a < b) return a;
  return b;
}
