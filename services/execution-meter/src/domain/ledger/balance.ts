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
  /** The part of `used` by which settlements exceeded their reservations. */
  readonly debt: Amount;
  readonly usage: TokenUsage;
  /** Settled round trips with estimated usage. */
  readonly estimatedTurns: bigint;
  /** Model calls that failed; calls that were aborted or that a cap refused are not counted. */
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
