/** A wake-up that is not lost when it comes before wait(); an abort wakes, too. */
export class ChangeAlarm {
  readonly #signal: AbortSignal;
  readonly #onAbort = () => this.ring();
  #rung = false;
  #wake: (() => void) | undefined;

  constructor(signal: AbortSignal) {
    this.#signal = signal;
    signal.addEventListener('abort', this.#onAbort);
  }

  ring(): void {
    this.#rung = true;
    this.#wake?.();
  }

  /** Resolves at the next ring, at once after a ring since the last wait, or after `ms`. */
  async wait(ms: number): Promise<void> {
    if (!this.#rung && !this.#signal.aborted) {
      const { promise, resolve } = Promise.withResolvers<void>();
      const timer = setTimeout(resolve, ms);
      this.#wake = resolve;
      await promise;
      clearTimeout(timer);
      this.#wake = undefined;
    }
    this.#rung = false;
  }

  /** Removes the abort listener. */
  close(): void {
    this.#signal.removeEventListener('abort', this.#onAbort);
  }
}
