import type { Replicas } from './replicas.ts';

/** What a process looks for in the store because another replica may have written it. */
export interface StorePollerOptions {
  readonly replicas: Replicas;
  /** Hints at it make it poll at once. */
  readonly topic: string;
  /** Milliseconds between looks without a hint, which may be lost; only where there can be others. */
  readonly intervalMs: number;
  /** Whether anything of this process could be concerned. */
  readonly isNeeded: () => boolean;
  readonly poll: () => Promise<void>;
  /** Told of a poll that failed, which is made again; must not throw. */
  readonly onError: (error: unknown) => void;
}

/** Looks at each hint of another replica, and now and then: one poll at a time. */
export class StorePoller {
  readonly #options: StorePollerOptions;
  readonly #unsubscribe: () => void;
  readonly #timer: NodeJS.Timeout | undefined;
  #looking: Promise<void> | undefined;
  #again = false;
  #isOver = false;

  constructor(options: StorePollerOptions) {
    this.#options = options;
    const { replicas, topic, intervalMs } = options;
    this.#unsubscribe = replicas.onHint(topic, () => this.#poll());
    if (!replicas.shared) return;
    this.#timer = setInterval(() => this.#poll(), intervalMs);
    this.#timer.unref();
  }

  /** Looks no more; resolves when the poll under way is over. */
  async stop(): Promise<void> {
    this.#isOver = true;
    clearInterval(this.#timer);
    this.#unsubscribe();
    await this.#looking;
  }

  #poll(): void {
    const { isNeeded, poll, onError } = this.#options;
    if (this.#isOver || !isNeeded()) return;
    // What changed since the poll under way began may not be in what that one sees.
    this.#again = this.#looking !== undefined;
    this.#looking ??= poll()
      .catch(onError)
      .finally(() => {
        this.#looking = undefined;
        if (this.#again) this.#poll();
      });
  }
}
