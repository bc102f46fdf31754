import type { Clock } from '@writ/kernel';

/** Interval at which a waiting request checks for a decision that another replica received, ms. */
const POLL_MS = 1_000;

/** The limit, abort signal and callbacks of a request that waits for a decision. */
export interface WaitTerms {
  /** Maximum wait, measured with the monotonic clock of the service, ms. */
  readonly holdMs: number;
  /** Aborts when the client disconnects, or when its agent has ended or is halted. */
  readonly signal: AbortSignal;
  /** Called when the request begins to wait, and when it no longer waits. */
  readonly onWait?: ((isWaiting: boolean) => void) | undefined;
  /** Called at the beginning of a wait and then about every ten seconds, with the id of the pending approval. */
  readonly onProgress?: ((approvalId: string) => void) | undefined;
}

const PROGRESS_MS = 10_000;

/** Wakes the requests of this process that wait for a person (AP-4). The decisions themselves are rows of the store. */
export class WaitingRequests {
  readonly #clock: Clock;
  readonly #wakes = new Map<string, Set<() => void>>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Makes the requests that wait for a call check its decision. */
  wake(callId: string): void {
    for (const wake of this.#wakes.get(callId) ?? []) wake();
  }

  /**
   * Waits until `isDecided` returns true; returns false when `holdMs` has elapsed.
   * @throws the reason of the signal
   */
  async until(
    callId: string,
    isDecided: () => Promise<boolean>,
    {
      holdMs,
      signal,
      onProgress,
    }: Omit<WaitTerms, 'onProgress'> & { readonly onProgress: () => void },
  ): Promise<boolean> {
    const began = this.#clock.monotonicMs();
    for (let nextProgress = 0; ; ) {
      const woken = this.#woken(callId, signal);
      if (await isDecided()) {
        woken.cancel();
        return true;
      }
      const waited = this.#clock.monotonicMs() - began;
      if (waited >= holdMs) {
        woken.cancel();
        return false;
      }
      if (waited >= nextProgress) {
        nextProgress = waited + PROGRESS_MS;
        onProgress();
      }
      await woken.promise;
      signal.throwIfAborted();
    }
  }

  /**
   * Returns a promise that resolves at the next wake, poll or abort. Call it before `isDecided`, so that no wake is
   * missed.
   */
  #woken(callId: string, signal: AbortSignal) {
    const { promise, resolve } = Promise.withResolvers<void>();
    const wakes = this.#wakes.get(callId) ?? new Set();
    const timer = setTimeout(() => wake(), POLL_MS);
    const cancel = (): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', wake);
      wakes.delete(wake);
      if (wakes.size === 0 && this.#wakes.get(callId) === wakes) this.#wakes.delete(callId);
    };
    const wake = (): void => {
      cancel();
      resolve();
    };
    wakes.add(wake);
    this.#wakes.set(callId, wakes);
    signal.addEventListener('abort', wake, { once: true });
    if (signal.aborted) wake();
    return { promise, cancel };
  }
}
