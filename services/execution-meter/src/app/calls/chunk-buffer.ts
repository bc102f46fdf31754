import type { CallChunk } from '../../domain/chat/call-chunk.ts';

/** Buffers the chunks of a call, so that every reader receives all of them from the start (EM-7). */
export class ChunkBuffer {
  readonly #chunks: CallChunk[] = [];
  #ended: { readonly error?: unknown } | undefined;
  #changed = Promise.withResolvers<void>();

  #hasNative = false;

  /** Whether a part of a native answer was added. */
  get hasNative(): boolean {
    return this.#hasNative;
  }

  /** Adds a chunk. */
  append(chunk: CallChunk): void {
    if (chunk.type === 'native') this.#hasNative = true;
    this.#chunks.push(chunk);
    this.#notify();
  }

  /** Ends the buffer. If `error` is set, readers receive all chunks and then fail with this error. */
  end(error?: unknown): void {
    if (this.#ended !== undefined) return;
    this.#ended = error === undefined ? {} : { error };
    this.#notify();
  }

  /**
   * Yields every chunk from the first to the last.
   * @throws the error with which the buffer ended; the reason of `signal` as soon as the signal aborts
   */
  async *read(signal: AbortSignal): AsyncGenerator<CallChunk, void, undefined> {
    const notify = (): void => this.#notify();
    signal.addEventListener('abort', notify, { once: true });
    try {
      for (let index = 0; ; ) {
        signal.throwIfAborted();
        const chunk = this.#chunks[index];
        if (chunk !== undefined) {
          index += 1;
          yield chunk;
        } else if (this.#ended === undefined) {
          await this.#changed.promise;
        } else if (this.#ended.error === undefined) return;
        else throw this.#ended.error;
      }
    } finally {
      signal.removeEventListener('abort', notify);
    }
  }

  #notify(): void {
    const { resolve } = this.#changed;
    this.#changed = Promise.withResolvers<void>();
    resolve();
  }
}
