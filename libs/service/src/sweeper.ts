import { AsyncLocalStorage } from 'node:async_hooks';
import type { Logger } from '@writ/telemetry';

/** Work that is done every now and then, because no call brings it about. */
export type Sweep = () => Promise<unknown>;

/** Runs sweeps one after the other, again and again; one that fails is logged and holds up no other. */
export class Sweeper {
  readonly #sweeps: Readonly<Record<string, Sweep>>;
  readonly #everyMs: number;
  readonly #log: Logger;
  #timer: NodeJS.Timeout | undefined;
  #running: Promise<void> | undefined;
  #stopped = false;

  /** @param sweeps by what they do, as logs name them */
  constructor(sweeps: Readonly<Record<string, Sweep>>, everyMs: number, log: Logger) {
    this.#sweeps = sweeps;
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
    this.#running = this.#sweep().finally(() => {
      if (!this.#stopped) this.#timer = setTimeout(() => this.#next(), this.#everyMs);
    });
  }

  async #sweep(): Promise<void> {
    for (const [name, sweep] of Object.entries(this.#sweeps)) {
      if (this.#stopped) return;
      try {
        await sweep();
      } catch (error) {
        this.#log.error({ err: error, sweep: name }, 'A sweep failed; the next one tries again.');
      }
    }
  }
}
