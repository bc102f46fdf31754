import { DeadlineError } from '@writ/kernel';
import { MAX_TIMER_MS } from '../limits.ts';

/** Tolerance for timers that fire slightly early, ms. */
const SLACK_MS = 2;

/** The deadline of one call on the server. */
export class CallDeadline {
  // A step of the wall clock neither ends a call nor prolongs it (BD-3).
  readonly #endsAt: number;
  readonly #limitMs: number;
  readonly #timer: NodeJS.Timeout;

  /** @param limitMs time until the deadline, ms; `expire` is called at the deadline */
  constructor(limitMs: number, expire: () => void) {
    this.#limitMs = Math.min(Math.max(0, limitMs), MAX_TIMER_MS);
    this.#endsAt = performance.now() + this.#limitMs;
    this.#timer = setTimeout(expire, this.#limitMs);
  }

  /** Time left, ms; below zero after the deadline. */
  get remainingMs(): number {
    return this.#endsAt - performance.now();
  }

  /** Whether the deadline has passed. */
  get isExpired(): boolean {
    return this.remainingMs <= SLACK_MS;
  }

  /** Stops the timer. */
  clear(): void {
    clearTimeout(this.#timer);
  }

  /** The error that a caller of `method` receives. */
  error(method: string): DeadlineError {
    const timeout = String(Math.round(this.#limitMs));
    return new DeadlineError(
      'DEADLINE_EXCEEDED',
      `${method} did not complete within ${timeout} ms.`,
      { timeout_ms: timeout },
    );
  }
}
