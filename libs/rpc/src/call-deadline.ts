import { DeadlineError } from '@writ/kernel';
import { MAX_TIMER_MS } from './limits.ts';

/** Timers may fire a little before the clock says that they should. */
const SLACK_MS = 2;

/** The time limit of one call on the server. */
export class CallDeadline {
  readonly at: Date;
  readonly #limitMs: number;
  readonly #timer: NodeJS.Timeout;

  /** @param limitMs time left, ms; `expire` is called when it is used up */
  constructor(limitMs: number, expire: () => void) {
    this.#limitMs = Math.min(Math.max(0, limitMs), MAX_TIMER_MS);
    this.at = new Date(Date.now() + this.#limitMs);
    this.#timer = setTimeout(expire, this.#limitMs);
  }

  /** Whether it is over. */
  get isOver(): boolean {
    return Date.now() >= this.at.getTime() - SLACK_MS;
  }

  /** Stops waiting for it. */
  clear(): void {
    clearTimeout(this.#timer);
  }

  /** What a caller of `method` gets once it is over. */
  error(method: string): DeadlineError {
    const timeout = String(Math.round(this.#limitMs));
    return new DeadlineError(
      'DEADLINE_EXCEEDED',
      `${method} was not answered within ${timeout} ms.`,
      { timeout_ms: timeout },
    );
  }
}
