import type { Replicas } from './replicas.ts';

/** What a process looks for in the store because another replica may have written it. */
export interface StandingLookOptions {
  readonly replicas: Replicas;
  /** Hints at it make it look at once. */
  readonly topic: string;
  /** Milliseconds between looks without a hint, which may be lost; only where there can be others. */
  readonly everyMs: number;
  /** Whether anything of this process could be concerned. */
  readonly isNeeded: () => boolean;
  readonly look: () => Promise<void>;
  /** Told of a look that failed, which is made again; must not throw. */
  readonly onError: (error: unknown) => void;
}

/** Looks at each hint of another replica, and now and then: one look at a time. */
export class StandingLook {
  readonly #options: StandingLookOptions;
  readonly #unsubscribe: () => void;
  readonly #timer: NodeJS.Timeout | undefined;
  #looking: Promise<void> | undefined;
  #again = false;
  #isOver = false;

  constructor(options: StandingLookOptions) {
    this.#options = options;
    const { replicas, topic, everyMs } = options;
    this.#unsubscribe = replicas.onHint(topic, () => this.#look());
    if (!replicas.shared) return;
    this.#timer = setInterval(() => this.#look(), everyMs);
    this.#timer.unref();
  }

  /** Looks no more; resolves when the look under way is over. */
  async stop(): Promise<void> {
    this.#isOver = true;
    clearInterval(this.#timer);
    this.#unsubscribe();
    await this.#looking;
  }

  #look(): void {
    const { isNeeded, look, onError } = this.#options;
    if (this.#isOver || !isNeeded()) return;
    // What changed since the look under way began may not be in what that one sees.
    this.#again = this.#looking !== undefined;
    this.#looking ??= look()
      .catch(onError)
      .finally(() => {
        this.#looking = undefined;
        if (this.#again) this.#look();
      });
  }
}
