import { countTokens } from './token-counter.ts';

/** Tokenizers differ: an answer within its limit may count as up to 1.5 times as many tokens, and a few more. */
const TOLERANCE = { numerator: 3n, denominator: 2n, tokens: 16n };
/** Chunks of a stream for one requested token: some servers send single characters, or chunks without content. */
const CHUNKS_PER_TOKEN = 16;
const MORE_CHUNKS = 1_000;
/** Content is counted in pieces of at least this size. */
const COUNTED_BYTES = 2_048;

/** Decides when a stream has exceeded the requested output tokens (EM-8). */
export class OutputLimit {
  readonly #limit: bigint;
  readonly #mostChunks: number;
  #chunks = 0;
  #tokens = 0n;
  #uncounted = '';
  #uncountedBytes = 0;

  constructor(requested: bigint) {
    const { numerator, denominator, tokens } = TOLERANCE;
    this.#limit = (requested * numerator) / denominator + tokens;
    this.#mostChunks = Number(requested) * CHUNKS_PER_TOKEN + MORE_CHUNKS;
  }

  /**
   * Adds the content of one more chunk; whether the answer so far exceeds the limit. Text is counted only when there may
   * be too much of it: a token has at least one byte.
   */
  async exceedsWith(content: string): Promise<boolean> {
    this.#chunks += 1;
    if (this.#chunks > this.#mostChunks) return true;
    this.#uncounted += content;
    this.#uncountedBytes += Buffer.byteLength(content);
    const isPossible = this.#tokens + BigInt(this.#uncountedBytes) > this.#limit;
    if (!isPossible || this.#uncountedBytes < COUNTED_BYTES) return false;
    this.#tokens += await countTokens([this.#uncounted]);
    this.#uncounted = '';
    this.#uncountedBytes = 0;
    return this.#tokens > this.#limit;
  }
}
