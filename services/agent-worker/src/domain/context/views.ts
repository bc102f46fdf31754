import type { ChatTurn } from '../calls/model-call.ts';

/** What these rules know of a turn. */
export interface Turn {
  readonly role: 'system' | 'user' | 'assistant' | 'tool';
}

/** A conversation in pieces that may be left out as a whole. */
export interface Conversation<T extends Turn> {
  /** The instructions at its head; never left out. */
  readonly head: readonly T[];
  /** An assistant's turn with the results of the tools that it called, or any other turn alone. */
  readonly exchanges: readonly (readonly T[])[];
}

/** Cuts a conversation where providers allow it: a tool's result never stands without the call. */
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

/** Tokens of one turn, as its reader counts them. */
export type CountTokens<T> = (turn: T) => number;

/** Tokens of many turns. */
export function tokensOf<T>(turns: readonly T[], count: CountTokens<T>): number {
  return turns.reduce((sum, turn) => sum + count(turn), 0);
}

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

/** The turns with every tool result over `maxLength` characters cut and marked (AG-8). */
export function truncateToolResults(turns: readonly ChatTurn[], maxLength: number): ChatTurn[] {
  return turns.map((turn) => {
    if (turn.role !== 'tool') return turn;
    const results = turn.results.map((result) => ({
      ...result,
      text: cut(result.text, maxLength),
    }));
    return { ...turn, results };
  });
}

function cut(text: string, maxLength: number): string {
  if (text.length <= maxLength) return text;
  // Half of a surrogate pair is no character.
  const kept = text.slice(0, maxLength).replace(/[\uD800-\uDBFF]$/, '');
  return `${kept}\n[cut: ${text.length} characters in all]`;
}
