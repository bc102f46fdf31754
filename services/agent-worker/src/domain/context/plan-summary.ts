import { type CountTokens, exchangesOf, type Turn, tokensOf } from './exchanges.ts';

/** A conversation whose older part shall be summarised. */
export interface SummaryPlan<T> {
  readonly head: readonly T[];
  /** What the summary takes the place of. */
  readonly older: readonly T[];
  readonly latest: readonly T[];
}

/**
 * What to summarise when a conversation is over `budget` tokens: everything but its instructions and
 * its last `keepLast` exchanges (AG-8). Undefined when it fits, or has nothing older.
 */
export function planSummary<T extends Turn>(
  turns: readonly T[],
  budget: number,
  count: CountTokens<T>,
  keepLast: number,
): SummaryPlan<T> | undefined {
  if (tokensOf(turns, count) <= budget) return undefined;
  const { head, exchanges } = exchangesOf(turns);
  const last = Math.max(1, keepLast);
  const older = exchanges.slice(0, -last).flat();
  if (older.length === 0) return undefined;
  return { head, older, latest: exchanges.slice(-last).flat() };
}
