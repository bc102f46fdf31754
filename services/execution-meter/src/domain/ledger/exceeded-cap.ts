import { type Amount, DIMENSIONS, type Dimension } from './amount.ts';
import type { Balance, Level } from './balance.ts';

/** A cap that the settled amount exceeds, or that a reservation would exceed. */
export interface Breach {
  readonly level: Level;
  readonly dimension: Dimension;
  /** The settled amount of the account, or the amount that the account would have with the reservation. */
  readonly used: bigint;
  readonly limit: bigint;
}

/**
 * Returns the first cap that the settled amount exceeds, in the order tokens, cost, turns (EM-2).
 */
export function exceededCap(balances: readonly Balance[]): Breach | undefined {
  return firstBreach(balances, (balance, dimension) => balance.used[dimension]);
}

/**
 * Returns the first cap that `hold` would exceed in addition to the used and reserved amounts
 * (EM-3).
 */
export function exceededByHold(balances: readonly Balance[], hold: Amount): Breach | undefined {
  return firstBreach(
    balances,
    ({ used, reserved }, dimension) => used[dimension] + reserved[dimension] + hold[dimension],
  );
}

function firstBreach(
  balances: readonly Balance[],
  figure: (balance: Balance, dimension: Dimension) => bigint,
): Breach | undefined {
  for (const dimension of DIMENSIONS) {
    for (const balance of balances) {
      const limit = balance.caps[dimension];
      const used = figure(balance, dimension);
      if (limit !== undefined && used > limit) {
        return { level: balance.level, dimension, used, limit };
      }
    }
  }
  return undefined;
}
