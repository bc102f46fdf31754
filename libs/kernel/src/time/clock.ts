/** A source of the current time. */
export interface Clock {
  /** Returns the current time. The clock may be corrected at any moment, even backwards. */
  now(): Date;
  /**
   * Milliseconds since an arbitrary moment of this process, never corrected; meaningful only as a difference. For
   * durations inside a process, which a correction of the system clock must not change (BD-3).
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

  /** Lets `ms` milliseconds pass. A negative value sets the clock back and does not change `monotonicMs`. */
  advance(ms: number): void {
    this.#milliseconds += ms;
    this.#elapsedMs += Math.max(0, ms);
  }

  /** Corrects the clock by `ms` milliseconds, forwards or backwards, without changing `monotonicMs`. */
  step(ms: number): void {
    this.#milliseconds += ms;
  }
}
