import { type CountTokens, exchangesOf, type Turn, tokensOf } from './exchanges.ts';

/** What `compact` keeps and how it says that something is missing. */
export interface CompactOptions<T> {
  /** Exchanges kept at the end, as far as they fit. */
  readonly keepLast: number;
  /** The turn that stands for `missing` turns left out. */
  readonly marker: (missing: number) => T;
}

/**
 * A conversation over `budget` tokens cut down to its instructions, its first exchange, a marker and
 * its last exchanges (AG-8, `compact`). Fewer than `keepLast` are kept when they do not fit; the last
 * one always is.
 */
export function compact<T extends Turn>(
  turns: readonly T[],
  budget: number,
  count: CountTokens<T>,
  { keepLast, marker }: CompactOptions<T>,
): readonly T[] {
  if (tokensOf(turns, count) <= budget) return turns;
  const { head, exchanges } = exchangesOf(turns);
  const [first = [], ...rest] = exchanges;
  let kept = Math.max(1, keepLast);
  while (kept > 1 && tokensOf(viewOf(kept), count) > budget) kept -= 1;
  return viewOf(kept);

  function viewOf(last: number): readonly T[] {
    if (rest.length <= last) return turns;
    const missing = rest.slice(0, -last).flat();
    return [...head, ...first, marker(missing.length), ...rest.slice(-last).flat()];
  }
}
