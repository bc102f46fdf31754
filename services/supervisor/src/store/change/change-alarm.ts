/** Remembers a ring that came while nobody waited, so that none is missed; an abort rings, too. */
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

  /** Resolves at the next ring, or the last unheard one, or after `ms`. */
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

  /** Listens to the signal no more. */
  close(): void {
    this.#signal.removeEventListener('abort', this.#onAbort);
  }
}
