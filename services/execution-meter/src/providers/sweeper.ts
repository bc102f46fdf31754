import { AsyncLocalStorage } from 'node:async_hooks';
import type { Logger } from '@writ/telemetry';

/** Does something every now and then, because no call brings it about. */
export class Sweeper {
  readonly #sweep: () => Promise<unknown>;
  readonly #everyMs: number;
  readonly #log: Logger;
  #timer: NodeJS.Timeout | undefined;
  #running: Promise<void> | undefined;
  #stopped = false;

  constructor(sweep: () => Promise<unknown>, everyMs: number, log: Logger) {
    this.#sweep = sweep;
    this.#everyMs = everyMs;
    this.#log = log;
  }

  /** Begins with a sweep at once. */
  start(): void {
    AsyncLocalStorage.snapshot()(() => this.#next());
  }

  /** Begins no further sweep; resolves when the one under way has ended. */
  async stop(): Promise<void> {
    this.#stopped = true;
    clearTimeout(this.#timer);
    await this.#running;
  }

  #next(): void {
    this.#running = this.#once().finally(() => {
      if (!this.#stopped) this.#timer = setTimeout(() => this.#next(), this.#everyMs);
    });
  }

  async #once(): Promise<void> {
    try {
      await this.#sweep();
    } catch (error) {
      this.#log.error({ err: error }, 'A sweep failed; the next one tries again.');
    }
  }
}
