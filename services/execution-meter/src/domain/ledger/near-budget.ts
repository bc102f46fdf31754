import type { Balance } from './balance.ts';

/** Thresholds of the near-budget warning (EM-5). */
export interface NearBudget {
  /** Remaining tokens at or below which the warning applies. */
  readonly reserveTokens: bigint;
  /** Remaining share of the cost cap at or below which the warning applies, in millionths. */
  readonly reserveCostPpm: bigint;
}

/** Default thresholds: 512 tokens and a tenth of the cost cap (EM-5). */
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
