import type { CallChunk } from './call-chunk.ts';

/** What a call has said so far; everybody who joins hears all of it from the start (EM-7). */
export class CallLog {
  readonly #chunks: CallChunk[] = [];
  #ended: { readonly error?: unknown } | undefined;
  #news = Promise.withResolvers<void>();

  /** Adds a chunk. */
  append(chunk: CallChunk): void {
    this.#chunks.push(chunk);
    this.#wake();
  }

  /** Ends the log; with an error, readers fail with it after the last chunk. */
  end(error?: unknown): void {
    if (this.#ended !== undefined) return;
    this.#ended = error === undefined ? {} : { error };
    this.#wake();
  }

  /**
   * Every chunk, from the first to the end.
   * @throws the log's error; the signal's reason as soon as it aborts
   */
  async *read(signal: AbortSignal): AsyncGenerator<CallChunk, void, undefined> {
    const wake = (): void => this.#wake();
    signal.addEventListener('abort', wake, { once: true });
    try {
      for (let index = 0; ; ) {
        signal.throwIfAborted();
        const chunk = this.#chunks[index];
        if (chunk !== undefined) {
          index += 1;
          yield chunk;
        } else if (this.#ended === undefined) {
          await this.#news.promise;
        } else if (this.#ended.error === undefined) return;
        else throw this.#ended.error;
      }
    } finally {
      signal.removeEventListener('abort', wake);
    }
  }

  #wake(): void {
    const { resolve } = this.#news;
    this.#news = Promise.withResolvers<void>();
    resolve();
  }
}
