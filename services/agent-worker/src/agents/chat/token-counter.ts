import type { ChatTurn } from '../../domain/calls/model-call.ts';
import type { CountTokens } from '../../domain/context/shorten-conversation.ts';

/** Approximate overhead of providers per turn. */
const TOKENS_AROUND_A_TURN = 4;

/** Maximum length of a text piece: tokenizing one long word can take quadratic time. */
const PIECE = 1_024;

/** Text that looks like a control token is counted as plain text. */
const PLAIN_TEXT = { disallowedSpecial: new Set<string>() };

/**
 * Token counts by turn. They are cached because the whole conversation is counted before each model call; turns are
 * immutable.
 */
const counted = new WeakMap<ChatTurn, number>();

/**
 * Loads a tokenizer similar to those of the models, with its tables at first use, and returns a
 * function that counts the tokens of a turn.
 */
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
