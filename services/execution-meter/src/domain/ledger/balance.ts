import { type Amount, type Caps, DIMENSIONS, type Dimension, NOTHING, plus } from './amount.ts';
import { addUsage, NO_USAGE, type TokenUsage } from './spending.ts';

/** Levels of budgets, in the order of cap checks (EM-3). */
export const LEVELS = ['agent', 'run', 'session', 'tenant_day', 'tenant_month'] as const;

/** One of {@link LEVELS}. */
export type Level = (typeof LEVELS)[number];

/** Account of one level. */
export interface Balance extends Change {
  readonly level: Level;
  readonly caps: Caps;
  /** Who set the caps at run time; undefined when they come from a run or the catalog. */
  readonly capsSetBy?: string | undefined;
}

/** The sums of an account, or the changes of one event. */
export interface Change {
  /** Settled amount. */
  readonly used: Amount;
  /** Amount held by reservations. */
  readonly reserved: Amount;
  /** The part of `used` that settled above its reservations. */
  readonly debt: Amount;
  readonly usage: TokenUsage;
  /** Settled round trips with estimated usage. */
  readonly estimatedTurns: bigint;
  /** Model calls that ended without an answer. */
  readonly failedCalls: bigint;
}

/** An empty change. */
export const NO_CHANGE: Change = Object.freeze({
  used: NOTHING,
  reserved: NOTHING,
  debt: NOTHING,
  usage: NO_USAGE,
  estimatedTurns: 0n,
  failedCalls: 0n,
});

/** Returns an account without bookings. */
export function emptyBalance(level: Level, caps: Caps): Balance {
  return { ...NO_CHANGE, level, caps };
}

/** Returns the account after a change. */
export function applyChange(balance: Balance, change: Change): Balance {
  return {
    level: balance.level,
    caps: balance.caps,
    capsSetBy: balance.capsSetBy,
    used: plus(balance.used, change.used),
    reserved: plus(balance.reserved, change.reserved),
    debt: plus(balance.debt, change.debt),
    usage: addUsage(balance.usage, change.usage),
    estimatedTurns: balance.estimatedTurns + change.estimatedTurns,
    failedCalls: balance.failedCalls + change.failedCalls,
  };
}

/** A share of a cap that the settled amount has reached. */
export interface Crossing {
  readonly level: Level;
  readonly dimension: Dimension;
  /** Percent of the cap. */
  readonly percent: number;
  readonly limit: bigint;
}

/**
 * Returns the highest threshold that each account has reached with a settlement, by level and dimension. An agent with
 * the caps of its run is omitted: its run reaches them first, or at the same time.
 * @param percents in ascending order
 */
export function crossings(
  before: readonly Balance[],
  after: readonly Balance[],
  percents: readonly number[],
): Crossing[] {
  const run = after.find(({ level }) => level === 'run')?.caps;
  return after.flatMap((balance, index) =>
    DIMENSIONS.flatMap((dimension) => {
      const { level, caps, used } = balance;
      const limit = caps[dimension];
      const spent = before[index]?.used[dimension] ?? 0n;
      if (limit === undefined || limit === 0n) return [];
      if (level === 'agent' && limit === run?.[dimension]) return [];
      const isReached = (percent: number, amount: bigint) =>
        amount * 100n >= limit * BigInt(percent);
      const percent = percents.findLast(
        (each) => isReached(each, used[dimension]) && !isReached(each, spent),
      );
      return percent === undefined ? [] : [{ level, dimension, percent, limit }];
    }),
  );
}

/** Thresholds of the near-budget warning (EM-5). */
export interface NearBudget {
  /** Remaining tokens at or below which the warning applies. */
  readonly reserveTokens: bigint;
  /** Remaining share of the cost cap at or below which the warning applies, in millionths. */
  readonly reserveCostPpm: bigint;
}

/** 512 tokens, a tenth of the cost (EM-5). */
export const DEFAULT_NEAR_BUDGET: NearBudget = Object.freeze({
  reserveTokens: 512n,
  reserveCostPpm: 100_000n,
});

/** Whether the settled amount leaves no more than the reserve (EM-5). Holds do not count. */
export function isNearBudget({ caps, used }: Balance, near: NearBudget): boolean {
  if (caps.tokens !== undefined && caps.tokens - used.tokens <= near.reserveTokens) return true;
  if (caps.cost === undefined) return false;
  return (caps.cost - used.cost) * 1_000_000n <= near.reserveCostPpm * caps.cost;
}

/**
 * Returns the remaining budget for reservations: the minimum of all levels by dimension, never
 * negative. A dimension without caps is absent (EM-3).
 */
export function remainingBudget(balances: readonly Balance[]): Caps {
  const remaining: Partial<Record<Dimension, bigint>> = {};
  for (const { caps, used, reserved } of balances) {
    for (const dimension of DIMENSIONS) {
      const cap = caps[dimension];
      if (cap === undefined) continue;
      const rest = cap - used[dimension] - reserved[dimension];
      const least = remaining[dimension];
      if (least === undefined || rest < least) remaining[dimension] = rest > 0n ? rest : 0n;
    }
  }
  return remaining;
}

/** Returns the UTC day of a time as `YYYY-MM-DD`, the period of daily tenant caps (EM-3). */
export function dayOf(at: Date): string {
  return at.toISOString().slice(0, 10);
}

/** Returns the UTC month of a day as `YYYY-MM`. */
export function monthOf(day: string): string {
  return day.slice(0, 7);
}
