import type { ChatTurn } from '../../domain/calls/model-call.ts';
import type { CountTokens } from '../../domain/context/views.ts';

/** What a provider adds around each turn, about. */
const TOKENS_AROUND_A_TURN = 4;

/** A tokenizer's time can grow with the square of one long word, so it gets texts in pieces. */
const PIECE = 1_024;

/** What looks like a control token in a conversation is text like any other. */
const PLAIN_TEXT = { disallowedSpecial: new Set<string>() };

/** A conversation is counted anew before each model call; its turns never change. */
const counted = new WeakMap<ChatTurn, number>();

/** Counts a turn's tokens with a tokenizer that is near to what models use; its tables are loaded at the first use. */
export async function loadTokenCounter(): Promise<CountTokens<ChatTurn>> {
  const { countTokens } = await import('gpt-tokenizer/encoding/o200k_base');
  return (turn) => {
    const known = counted.get(turn);
    if (known !== undefined) return known;
    const text = textOf(turn);
    let tokens = TOKENS_AROUND_A_TURN;
    for (let from = 0; from < text.length; from += PIECE)
      tokens += countTokens(text.slice(from, from + PIECE), PLAIN_TEXT);
    counted.set(turn, tokens);
    return tokens;
  };
}

function textOf(turn: ChatTurn): string {
  if (turn.role === 'tool') return turn.results.map(({ text }) => text).join('\n');
  const uses = turn.role === 'assistant' ? (turn.toolUses ?? []) : [];
  return [turn.text, ...uses.map(({ tool, argumentsJson }) => `${tool} ${argumentsJson}`)].join(
    '\n',
  );
}
