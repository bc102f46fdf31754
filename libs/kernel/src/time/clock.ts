/** A source of the current time. */
export interface Clock {
  /** The current time. */
  now(): Date;
}

/** The system clock. */
export const systemClock: Clock = Object.freeze({ now: () => new Date() });

/** A clock for tests that advances only manually. */
export class ManualClock implements Clock {
  #milliseconds: number;

  constructor(start: Date = new Date('2026-01-01T00:00:00Z')) {
    this.#milliseconds = start.getTime();
  }

  now(): Date {
    return new Date(this.#milliseconds);
  }

  /** Advances the clock by `ms` milliseconds; negative values set it back. */
  advance(ms: number): void {
    this.#milliseconds += ms;
  }
}
