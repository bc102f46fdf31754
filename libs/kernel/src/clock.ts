/** Where the time comes from; injected wherever time matters. */
export interface Clock {
  /** The present moment. */
  now(): Date;
}

/** The machine's own clock. */
export const systemClock: Clock = Object.freeze({ now: () => new Date() });

/** A clock that moves only when told to. */
export class ManualClock implements Clock {
  #milliseconds: number;

  constructor(start: Date = new Date('2026-01-01T00:00:00Z')) {
    this.#milliseconds = start.getTime();
  }

  now(): Date {
    return new Date(this.#milliseconds);
  }

  /** Moves the clock by `ms` milliseconds; negative steps back, as real clocks sometimes do. */
  advance(ms: number): void {
    this.#milliseconds += ms;
  }
}
