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
