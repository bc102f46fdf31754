import { WakeableLoop } from '@writ/kernel';
import type { Logger } from '@writ/telemetry';
import type { BackgroundWork } from './background-work.ts';

/** Periodic work that no call triggers. */
export type Sweep = () => Promise<unknown>;

/** Runs sweeps one after the other at an interval; a failed sweep is logged and does not affect the others. */
export class Sweeper implements BackgroundWork {
  readonly #sweeps: Readonly<Record<string, Sweep>>;
  readonly #log: Logger;
  readonly #loop: WakeableLoop;
  readonly #isPaused: () => boolean;
  #isStopped = false;

  /**
   * @param sweeps by name, as in logs
   * @param isPaused whether no sweep begins now, such as while the clock is wrong
   */
  constructor(
    sweeps: Readonly<Record<string, Sweep>>,
    intervalMs: number,
    log: Logger,
    isPaused: () => boolean = () => false,
  ) {
    this.#isPaused = isPaused;
    this.#sweeps = sweeps;
    this.#log = log;
    const onError = (error: unknown): void => log.error({ err: error }, 'sweeper failed');
    this.#loop = new WakeableLoop({ pass: () => this.#sweep(), intervalMs, onError });
  }

  /** Begins with a sweep at once. */
  start(): void {
    this.#loop.start();
  }

  /** Begins no further sweep; resolves when the current one has ended. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#loop.stop();
  }

  async #sweep(): Promise<void> {
    for (const [name, sweep] of Object.entries(this.#sweeps)) {
      if (this.#isStopped || this.#isPaused()) return;
      try {
        await sweep();
      } catch (error) {
        this.#log.error({ err: error, sweep: name }, 'sweep failed');
      }
    }
  }
}
