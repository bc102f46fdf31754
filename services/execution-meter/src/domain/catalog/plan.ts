import { PreconditionError } from '@writ/kernel';
import type { Balance } from '../ledger/balance.ts';
import type { Hold } from '../ledger/entry.ts';
import { roomOf } from '../ledger/room.ts';
import { NO_USAGE, type Spending, type TokenUsage } from '../ledger/spending.ts';
import type { ModelEntry } from './model.ts';
import { affordableOutput, costOf, type TokenPrices, worstCost } from './prices.ts';

/** What one attempt of a call will need at most. */
export interface CallPlan {
  readonly model: ModelEntry;
  /** Undefined when nobody knows. */
  readonly prices: TokenPrices | undefined;
  /** Tokens of the prompt, at most. */
  readonly promptTokens: bigint;
  /** The prompt's tokens were counted; else they are an upper bound that may be far too high. */
  readonly counted: boolean;
  /** Output tokens that are wanted. */
  readonly outputTokens: bigint;
}

/** What an attempt with so many output tokens holds (EM-3). */
export function holdFor({ prices, promptTokens }: CallPlan, outputTokens: bigint): Hold {
  return {
    usage: { ...NO_USAGE, input: promptTokens, output: outputTokens },
    cost: prices === undefined ? 0n : worstCost(prices, promptTokens, outputTokens),
    turns: 1n,
  };
}

/** How many of the wanted output tokens fit every level; zero when not even the prompt does. */
export function fittingOutput(levels: readonly Balance[], plan: CallPlan): bigint {
  const { prices, promptTokens, outputTokens } = plan;
  const room = roomOf(levels);
  if (room.turns === 0n) return 0n;
  let fits = outputTokens;
  if (room.tokens !== undefined) fits = least(fits, room.tokens - promptTokens);
  if (room.cost !== undefined && prices !== undefined) {
    fits = least(fits, affordableOutput(prices, promptTokens, room.cost) ?? fits);
  }
  return fits > 0n ? fits : 0n;
}

/**
 * Refuses a call that a cost cap covers and nobody can price (EM-4).
 * @throws PreconditionError PRICE_MISSING
 */
export function requirePrice(levels: readonly Balance[], { prices, model }: CallPlan): void {
  const capped = levels.find(({ caps }) => caps.cost !== undefined);
  if (capped === undefined || prices !== undefined) return;
  throw new PreconditionError(
    'PRICE_MISSING',
    `Model ${model.alias} has no known price, but a cost cap applies (${capped.level}); set prices for it in the catalog.`,
    { model: model.alias, level: capped.level },
  );
}

/** One round trip with this usage, at the plan's prices. */
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
