import { countTokens } from './token-counter.ts';

/**
 * Tolerance for differing tokenizers: an answer within the requested limit may be counted as up to 1.5 times the limit
 * plus 16 tokens.
 */
const TOLERANCE = { numerator: 3n, denominator: 2n, tokens: 16n };
/**
 * Maximum number of stream chunks per requested token: some servers send single characters, or chunks without content.
 */
const CHUNKS_PER_TOKEN = 16;
const MORE_CHUNKS = 1_000;
/** Minimum number of bytes of uncounted content before its tokens are counted. */
const COUNTED_BYTES = 2_048;

/** Detects when a stream exceeds the requested number of output tokens (EM-8). */
export class OutputLimit {
  readonly #limit: bigint;
  readonly #maxChunks: number;
  #chunks = 0;
  #tokens = 0n;
  #uncounted = '';
  #uncountedBytes = 0;

  constructor(requested: bigint) {
    const { numerator, denominator, tokens } = TOLERANCE;
    this.#limit = (requested * numerator) / denominator + tokens;
    this.#maxChunks = Number(requested) * CHUNKS_PER_TOKEN + MORE_CHUNKS;
  }

  /**
   * Adds the content of a chunk and returns whether the answer is known to exceed the limit of tokens or of chunks. The
   * number of bytes is an upper bound of the number of tokens, because a token has at least one byte. Tokens are
   * counted only when this bound exceeds the limit and at least `COUNTED_BYTES` bytes are uncounted, so an excess in
   * fewer bytes is detected later or not at all.
   */
  async exceedsWith(content: string): Promise<boolean> {
    this.#chunks += 1;
    if (this.#chunks > this.#maxChunks) return true;
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
