import { setImmediate as nextTurnOfTheLoop } from 'node:timers/promises';
import { bytesOf } from '../domain/chat/prompt-size.ts';

/** A tokenizer's time can grow with the square of one long word, so it gets texts in pieces. */
const PIECE = 1_024;
/** Characters that are counted; beyond, bytes stand for tokens. */
const MAX_COUNTED = 256 * 1_024;
const PIECES_A_TURN = 32;

/**
 * Tokens of texts, counted with a tokenizer that is near to what models use. Cut into pieces, a text
 * has a few tokens more than whole, never fewer. Used where no provider said a figure, and where the
 * upper bound does not fit a budget (EM-3, EM-8).
 */
export async function countTokens(texts: readonly string[]): Promise<bigint> {
  // Its vocabulary takes longer to load than most calls last, and most calls never need it.
  const { countTokens: count } = await import('gpt-tokenizer/encoding/o200k_base');
  let tokens = 0n;
  let left = MAX_COUNTED;
  let pieces = 0;
  for (const text of texts) {
    const end = Math.min(text.length, left);
    for (let from = 0; from < end; from += PIECE) {
      tokens += BigInt(count(text.slice(from, Math.min(end, from + PIECE)), PLAIN_TEXT));
      pieces += 1;
      if (pieces % PIECES_A_TURN === 0) await nextTurnOfTheLoop();
    }
    left -= end;
    tokens += bytesOf([text.slice(end)]);
  }
  return tokens;
}

/** What looks like a control token in a prompt is text like any other. */
const PLAIN_TEXT = { disallowedSpecial: new Set<string>() };
