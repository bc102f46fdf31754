import { setImmediate as yieldToEventLoop } from 'node:timers/promises';
import { bytesOf } from '../domain/chat/prompt-size.ts';

/**
 * Length of the pieces into which texts are split, because the tokenizer takes quadratic time in the length of a word.
 */
const PIECE = 1_024;
/** Limit of counted characters; above it, bytes count as tokens. */
const MAX_COUNTED = 256 * 1_024;
const PIECES_PER_YIELD = 32;

/**
 * Counts the tokens of texts with a tokenizer that is similar to the tokenizers of current models. Splitting a text
 * into pieces can add a few tokens. Used when a provider reports no usage, when the upper bound does
 * not fit a budget, and for the limit of a streamed answer (EM-3, EM-8).
 */
export async function countTokens(texts: readonly string[]): Promise<bigint> {
  // Loaded on first use: its vocabulary is slow to load and most calls do not need it.
  const { countTokens: count } = await import('gpt-tokenizer/encoding/o200k_base');
  let tokens = 0n;
  let left = MAX_COUNTED;
  let pieces = 0;
  for (const text of texts) {
    const end = Math.min(text.length, left);
    for (let from = 0; from < end; from += PIECE) {
      tokens += BigInt(count(text.slice(from, Math.min(end, from + PIECE)), PLAIN_TEXT));
      pieces += 1;
      if (pieces % PIECES_PER_YIELD === 0) await yieldToEventLoop();
    }
    left -= end;
    tokens += bytesOf([text.slice(end)]);
  }
  return tokens;
}

/** Control tokens in a prompt are counted as plain text. */
const PLAIN_TEXT = { disallowedSpecial: new Set<string>() };
