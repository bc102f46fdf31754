import type { ChatTurn } from '../calls/model-call.ts';

/** The part of a turn that the view functions depend on. */
export interface Turn {
  readonly role: 'system' | 'user' | 'assistant' | 'tool';
}

/** A conversation split into units that can be removed as a whole. */
export interface Conversation<T extends Turn> {
  /** The leading instructions; never removed. */
  readonly head: readonly T[];
  /** An assistant's turn with the results of its tool calls, or any other single turn. */
  readonly exchanges: readonly (readonly T[])[];
}

/** Splits a conversation so that a tool result is never separated from its call. */
export function exchangesOf<T extends Turn>(turns: readonly T[]): Conversation<T> {
  const first = turns.findIndex(({ role }) => role !== 'system');
  const headLength = first === -1 ? turns.length : first;
  const exchanges: T[][] = [];
  for (const turn of turns.slice(headLength)) {
    const last = exchanges.at(-1);
    if (turn.role === 'tool' && last !== undefined) last.push(turn);
    else exchanges.push([turn]);
  }
  return { head: turns.slice(0, headLength), exchanges };
}

/** Counts the tokens of a turn. */
export type CountTokens<T> = (turn: T) => number;

/** Sums the tokens of turns. */
export function tokensOf<T>(turns: readonly T[], count: CountTokens<T>): number {
  return turns.reduce((sum, turn) => sum + count(turn), 0);
}

/** Options of {@link compact}. */
export interface CompactOptions<T> {
  /** Number of exchanges to keep at the end, if they fit. */
  readonly keepLast: number;
  /** Creates the turn that replaces `missing` turns. */
  readonly marker: (missing: number) => T;
}

/**
 * Reduces a conversation of more than `budget` tokens to its instructions, its first exchange, a marker and its last
 * exchanges (AG-8, `compact`). Keeps fewer than `keepLast` exchanges at the end if they do not fit, but always the last
 * exchange.
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

/**
 * Returns the latest exchanges that fit into `budget` tokens together with the instructions (AG-8, `sliding_window`).
 * The last exchange is always kept, even if it exceeds the budget. After the first tool call, the last exchange
 * consists of the latest tool calls and their results, so the message with the request may be dropped.
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

/** A conversation split for a summary of its older turns. */
export interface SummaryPlan<T> {
  readonly head: readonly T[];
  /** The turns that the summary replaces. */
  readonly older: readonly T[];
  readonly latest: readonly T[];
}

/**
 * Plans the summary of a conversation of more than `budget` tokens: the summary replaces all turns except the
 * instructions and the last `keepLast` exchanges (AG-8). Returns undefined when the conversation fits the budget or has
 * no other turns.
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

/** Truncates and marks every tool result that is longer than `maxLength` characters (AG-8). */
export function truncateToolResults(turns: readonly ChatTurn[], maxLength: number): ChatTurn[] {
  return turns.map((turn) => {
    if (turn.role !== 'tool' || turn.results.every(({ text }) => text.length <= maxLength)) {
      return turn;
    }
    const results = turn.results.map((result) => ({
      ...result,
      text: cut(result.text, maxLength),
    }));
    return { ...turn, results };
  });
}

function cut(text: string, maxLength: number): string {
  if (text.length <= maxLength) return text;
  // Does not split a surrogate pair.
  const kept = text.slice(0, maxLength).replace(/[\uD800-\uDBFF]$/, '');
  return `${kept}\n[cut: ${text.length} characters in all]`;
}
