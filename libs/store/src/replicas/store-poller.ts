import type { Replicas } from './replicas.ts';

/** Options of {@link StorePoller}. */
export interface StorePollerOptions {
  readonly replicas: Replicas;
  /** Hints on this topic cause a poll at once. */
  readonly topic: string;
  /** Poll interval, ms, because hints may be lost; applies only if there can be other replicas. */
  readonly intervalMs: number;
  /** Whether a poll could affect this process. */
  readonly isNeeded: () => boolean;
  readonly poll: () => Promise<void>;
  /** Receives the error of a failed poll; the next poll follows at the interval or a hint. Must not throw. */
  readonly onError: (error: unknown) => void;
}

/** Polls the store for changes of other replicas, at each hint and at an interval, one poll at a time. */
export class StorePoller {
  readonly #options: StorePollerOptions;
  readonly #unsubscribe: () => void;
  readonly #timer: NodeJS.Timeout | undefined;
  #polling: Promise<void> | undefined;
  #again = false;
  #isStopped = false;

  constructor(options: StorePollerOptions) {
    this.#options = options;
    const { replicas, topic, intervalMs } = options;
    this.#unsubscribe = replicas.onHint(topic, () => this.#poll());
    if (!replicas.shared) return;
    this.#timer = setInterval(() => this.#poll(), intervalMs);
    this.#timer.unref();
  }

  /** Stops polling; resolves when the current poll has ended. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    clearInterval(this.#timer);
    this.#unsubscribe();
    await this.#polling;
  }

  #poll(): void {
    const { isNeeded, poll, onError } = this.#options;
    if (this.#isStopped || !isNeeded()) return;
    // Polls again after the current poll, which may not see changes made after it began.
    this.#again = this.#polling !== undefined;
    this.#polling ??= poll()
      .catch(onError)
      .finally(() => {
        this.#polling = undefined;
        if (this.#again) this.#poll();
      });
  }
}
