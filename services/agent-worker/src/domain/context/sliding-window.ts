import { type CountTokens, exchangesOf, type Turn, tokensOf } from './exchanges.ts';

/**
 * The latest exchanges of a conversation that fit `budget` tokens together with its instructions
 * (AG-8, `sliding_window`). The last exchange stays however large it is: without it nothing is asked.
 */
export function slidingWindow<T extends Turn>(
  turns: readonly T[],
  budget: number,
  count: CountTokens<T>,
): readonly T[] {
  const { head, exchanges } = exchangesOf(turns);
  let left = budget - tokensOf(head, count);
  let from = exchanges.length;
  for (const exchange of exchanges.toReversed()) {
    left -= tokensOf(exchange, count);
    if (left < 0 && from < exchanges.length) break;
    from -= 1;
  }
  return from === 0 ? turns : [...head, ...exchanges.slice(from).flat()];
}
