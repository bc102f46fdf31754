/** Bytes that may wait for the reader; the message that passes this bound still enters. */
const HIGH_WATER_BYTES = 64 * 1024;

/** Messages on their way from a handler to its one reader in the same process: in order, and bounded. */
export class MessageQueue implements AsyncIterable<Buffer> {
  readonly #waiting: Buffer[] = [];
  #bytes = 0;
  #end: { readonly error?: Error } | undefined;
  #wakeReader: (() => void) | undefined;
  #wakeWriter: (() => void) | undefined;

  /** Adds a message; resolves when there is room for the next one, rejects when `signal` aborts before. */
  async push(message: Buffer, signal: AbortSignal): Promise<void> {
    this.#waiting.push(message);
    this.#bytes += message.byteLength;
    this.#wakeReader?.();
    while (this.#bytes > HIGH_WATER_BYTES) {
      signal.throwIfAborted();
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#wakeWriter = resolve;
      signal.addEventListener('abort', () => resolve(), { once: true });
      await promise;
    }
  }

  /** Ends the iteration after the messages that wait. */
  end(): void {
    this.#end ??= {};
    this.#wakeReader?.();
  }

  /** Throws `error` to the reader after the messages that wait. */
  fail(error: Error): void {
    this.#end ??= { error };
    this.#wakeReader?.();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Buffer, void> {
    for (;;) {
      const message = this.#waiting.shift();
      if (message !== undefined) {
        this.#bytes -= message.byteLength;
        this.#wakeWriter?.();
        yield message;
      } else if (this.#end !== undefined) {
        if (this.#end.error !== undefined) throw this.#end.error;
        return;
      } else {
        const { promise, resolve } = Promise.withResolvers<void>();
        this.#wakeReader = resolve;
        await promise;
      }
    }
  }
}
