/** A source of the current time. */
export interface Clock {
  /** The current time. It may be corrected at any moment, also backwards. */
  now(): Date;
  /**
   * Milliseconds since an arbitrary moment of this process, never corrected; meaningful only as a difference. Durations
   * inside a process are measured with it (BD-3).
   */
  monotonicMs(): number;
}

/** The system clock. */
export const systemClock: Clock = Object.freeze({
  now: () => new Date(),
  monotonicMs: () => performance.now(),
});

/** A clock for tests that advances only manually. */
export class ManualClock implements Clock {
  #milliseconds: number;
  #elapsedMs = 0;

  constructor(start: Date = new Date('2026-01-01T00:00:00Z')) {
    this.#milliseconds = start.getTime();
  }

  now(): Date {
    return new Date(this.#milliseconds);
  }

  monotonicMs(): number {
    return this.#elapsedMs;
  }

  /** Lets `ms` milliseconds pass; negative values only set the clock back. */
  advance(ms: number): void {
    this.#milliseconds += ms;
    this.#elapsedMs += Math.max(0, ms);
  }

  /** Corrects the clock by `ms` milliseconds, forwards or backwards, without time passing. */
  step(ms: number): void {
    this.#milliseconds += ms;
  }
}
