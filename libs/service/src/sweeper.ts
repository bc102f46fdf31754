import { WakeableLoop } from '@writ/kernel';
import type { Logger } from '@writ/telemetry';
import type { BackgroundWork } from './background-work.ts';

/** Periodic work, such as expiry, that runs independently of calls. */
export type Sweep = () => Promise<unknown>;

/** Runs sweeps one after the other at an interval; a failed sweep is logged and does not affect the others. */
export class Sweeper implements BackgroundWork {
  readonly #sweeps: Readonly<Record<string, Sweep>>;
  readonly #log: Logger;
  readonly #loop: WakeableLoop;
  readonly #isPaused: () => boolean;
  #isStopped = false;

  /**
   * @param sweeps sweeps by the name used in log lines
   * @param isPaused whether sweeps are paused, for example while the clock is skewed
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

  /** Runs the sweeps at once, then at the interval. */
  start(): void {
    this.#loop.start();
  }

  /** Starts no further sweep; resolves when the current sweep has ended. */
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
