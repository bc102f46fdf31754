import { DIMENSIONS, type Dimension } from './amount.ts';
import type { Balance, Level } from './balance.ts';

/** A share of a cap that the settled amount has reached. */
export interface ReachedThreshold {
  readonly level: Level;
  readonly dimension: Dimension;
  /** Percent of the cap. */
  readonly percent: number;
  readonly limit: bigint;
}

/**
 * Returns the highest threshold that each account has reached with a settlement, by level and dimension. Omits the
 * agent level in each dimension in which the agent has the same cap as its run, because the run reaches each threshold
 * first or at the same time.
 * @param percents in ascending order
 */
export function reachedThresholds(
  before: readonly Balance[],
  after: readonly Balance[],
  percents: readonly number[],
): ReachedThreshold[] {
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
