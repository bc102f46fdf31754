/** Maximum buffered bytes; the message that exceeds the limit is still accepted. */
const HIGH_WATER_BYTES = 64 * 1024;

/** A bounded FIFO queue between a handler and its reader in the same process. */
export class MessageQueue implements AsyncIterable<Buffer> {
  readonly #buffered: Buffer[] = [];
  #bytes = 0;
  #end: { readonly error?: Error } | undefined;
  #wakeReader: (() => void) | undefined;
  #wakeWriter: (() => void) | undefined;

  /** Adds a message; resolves when the queue has capacity again, rejects when `signal` aborts. */
  async push(message: Buffer, signal: AbortSignal): Promise<void> {
    this.#buffered.push(message);
    this.#bytes += message.byteLength;
    this.#wakeReader?.();
    while (this.#bytes > HIGH_WATER_BYTES) {
      signal.throwIfAborted();
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#wakeWriter = resolve;
      const onAbort = (): void => resolve();
      signal.addEventListener('abort', onAbort);
      await promise;
      signal.removeEventListener('abort', onAbort);
    }
  }

  /** Ends the iteration after the buffered messages. */
  end(): void {
    this.#end ??= {};
    this.#wakeReader?.();
  }

  /** Throws `error` to the reader after the buffered messages. */
  fail(error: Error): void {
    this.#end ??= { error };
    this.#wakeReader?.();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Buffer, void> {
    for (;;) {
      const message = this.#buffered.shift();
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
