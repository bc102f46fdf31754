/** Longest burst, ms. */
export const BURST_MS = 1_000;
/** Starts of a burst come at least this many times as fast as runs end, and as they recently ended. */
const BURST_RATIO = 4;
/** Time without a rejection after which the next burst is accepted, ms. */
export const CALM_MS = 5_000;
/** A tenant may have this many runs in flight under any load. */
export const MIN_LEVEL = 3;
/** Window of the level and of the rate at which runs end, ms; both are kept for the next window. */
export const LEVEL_MS = 5_000;

/** What a tenant has in flight when a start arrives. */
export interface InFlight {
  /** The starts that wait. */
  readonly waiting: number;
  /** The starts that wait, and the active runs. */
  readonly inFlight: number;
  /** The starts that may wait under any load. */
  readonly most: number;
}

/**
 * Whether the load of a tenant grows beyond the capacity (BD-5). A state machine: times are passed in, in milliseconds
 * of a monotonic clock.
 *
 * A caller that keeps a number of runs in flight starts them in a burst, and each later one when an earlier one has
 * ended: it holds its level. A caller that starts runs regardless of those that end raises its level without end; its
 * starts beyond the level are rejected, and each rejection lowers the level, until no more starts wait than may wait
 * under any load.
 */
export class TenantLoad {
  /** The most runs that the tenant recently had in flight, less one for each rejection. */
  #level = MIN_LEVEL;
  /** The same since {@link #levelAt}. */
  #nextLevel = MIN_LEVEL;
  #levelAt = 0;
  /** When starts began to wait. */
  #burstAt = 0;
  /** Starts that were accepted, and runs that have ended since then. */
  #accepted = 0;
  #ended = 0;
  /** Runs that have ended since {@link #levelAt}, and per ms in the time before it. */
  #endedNow = 0;
  #endRate = 0;
  #rejectedAt = Number.NEGATIVE_INFINITY;

  /** Decides on a start that arrives. */
  accepts({ waiting, inFlight, most }: InFlight, now: number): boolean {
    if (waiting === 0) {
      this.#burstAt = now;
      this.#accepted = 0;
      this.#ended = 0;
    }
    if (now - this.#levelAt > LEVEL_MS) {
      this.#level = this.#nextLevel;
      this.#nextLevel = MIN_LEVEL;
      this.#endRate = this.#endedNow / (now - this.#levelAt);
      this.#endedNow = 0;
      this.#levelAt = now;
    }
    if (waiting >= most && inFlight >= this.#level && !this.#isBurst(now)) {
      this.rejected(now);
      return false;
    }
    this.#accepted += 1;
    this.#level = Math.max(this.#level, inFlight + 1);
    this.#nextLevel = Math.max(this.#nextLevel, inFlight + 1);
    return true;
  }

  /** Records a rejection, also one by the settings: a tenant must not stay at their limits (BD-5). */
  rejected(now: number): void {
    this.#level = Math.max(MIN_LEVEL, this.#level - 1);
    this.#nextLevel = Math.min(this.#nextLevel, this.#level);
    this.#rejectedAt = now;
  }

  /** Records that a run has ended or waits. */
  ended(): void {
    this.#ended += 1;
    this.#endedNow += 1;
  }

  #isBurst(now: number): boolean {
    if (now - this.#burstAt > BURST_MS || now - this.#rejectedAt < CALM_MS) return false;
    // At first none of its runs has ended; without the earlier rate, any start would count as part of a burst.
    const expected = Math.max(this.#ended, this.#endRate * (now - this.#burstAt));
    return this.#accepted >= BURST_RATIO * expected;
  }
}
