import { AsyncLocalStorage } from 'node:async_hooks';
import { type BackoffOptions, backoffMs } from './backoff.ts';

/** Options of a {@link WakeableLoop}. */
export interface WakeableLoopOptions {
  /**
   * One pass. Returns the pause before the next pass, ms, or undefined for `intervalMs`; 0 repeats at once, and
   * Infinity waits for a wake-up.
   */
  readonly pass: () => Promise<number | undefined> | Promise<void>;
  /** Pause between two passes when no wake-up comes, ms; Infinity waits for a wake-up. */
  readonly intervalMs: number;
  /** Receives the error that a pass throws. The next pass starts after a back-off, which a wake-up does not shorten. */
  readonly onError: (error: unknown, retry: { attempt: number; retryInMs: number }) => void;
  /** Limits of the back-off after a failed pass; default: 50 ms, doubled up to the longer of `intervalMs` and 5 s. */
  readonly backoff?: BackoffOptions;
}

/**
 * Repeats a pass, one at a time: at once when woken, otherwise after a pause. A wake-up during a pass causes another
 * pass, so that no wake-up is lost. Passes run outside of the trace and the transaction of the code that wakes the
 * loop.
 */
export class WakeableLoop {
  readonly #options: WakeableLoopOptions;
  readonly #outside = AsyncLocalStorage.snapshot();
  #running: Promise<void> | undefined;
  #isStopped = false;
  #isWoken = false;
  #isBackingOff = false;
  #endPause: (() => void) | undefined;
  #failures = 0;

  constructor(options: WakeableLoopOptions) {
    this.#options = options;
  }

  /** Starts the loop with a pass. Idempotent. */
  start(): void {
    if (!this.#isStopped) this.#running ??= this.#outside(() => this.#run());
  }

  /** Requests a pass as soon as possible. A pass or a back-off in progress is not cut short. */
  wake(): void {
    this.#isWoken = true;
    if (!this.#isBackingOff) this.#endPause?.();
  }

  /** Resets the back-off, for a pass that achieved something before it fails. */
  resetBackoff(): void {
    this.#failures = 0;
  }

  /** Stops the loop; resolves when the current pass has ended. Idempotent. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#endPause?.();
    await this.#running;
  }

  async #run(): Promise<void> {
    while (!this.#isStopped) {
      this.#isWoken = false;
      const pauseMs = await this.#pass();
      if (pauseMs === 0) continue;
      if (this.#isBackingOff || !this.#isWoken) await this.#pause(pauseMs);
      this.#isBackingOff = false;
    }
  }

  /** Runs one pass and returns the milliseconds to pause after it. */
  async #pass(): Promise<number> {
    const { pass, intervalMs, onError } = this.#options;
    try {
      const pauseMs = await pass();
      this.#failures = 0;
      return pauseMs ?? intervalMs;
    } catch (error) {
      this.#failures += 1;
      const limits = this.#options.backoff ?? { baseMs: 50, maxMs: Math.max(5_000, intervalMs) };
      const retryInMs = Math.max(1, backoffMs(this.#failures, limits));
      this.#isBackingOff = true;
      onError(error, { attempt: this.#failures, retryInMs });
      return retryInMs;
    }
  }

  async #pause(ms: number): Promise<void> {
    if (this.#isStopped) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#endPause = resolve;
    const timer = Number.isFinite(ms) ? setTimeout(resolve, ms).unref() : undefined;
    await promise;
    clearTimeout(timer);
    this.#endPause = undefined;
  }
}
