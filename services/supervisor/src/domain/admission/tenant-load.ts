/** Longest burst, ms. */
export const BURST_MS = 1_000;
/**
 * Minimum ratio of accepted starts to ended runs in a burst. If fewer runs have ended than the recent rate predicts,
 * the predicted number is used.
 */
const BURST_RATIO = 4;
/** Time without a rejection after which the next burst is accepted, ms. */
export const CALM_MS = 5_000;
/** A tenant may have this many runs in flight under any load. */
export const MIN_LEVEL = 3;
/** Window over which the level and the rate of ending runs are measured, ms; both apply to the next window. */
export const LEVEL_MS = 5_000;

/** Number of starts and runs of a tenant when a start arrives. */
export interface InFlight {
  /** Number of waiting starts. */
  readonly waiting: number;
  /** Number of waiting starts and active runs. */
  readonly inFlight: number;
  /** Number of starts that may wait under any load. */
  readonly most: number;
}

/**
 * Detects whether the load of a tenant grows beyond the capacity (BD-5). A state machine: times are passed in, in
 * milliseconds of a monotonic clock.
 *
 * The level is the number of runs in flight that a tenant has recently reached. A caller that keeps a constant number
 * of runs in flight starts them in a burst, and then one run whenever another ends, so that its level stays constant. A
 * caller that starts runs regardless of how many end would raise its level without limit; its starts beyond the level
 * are rejected, and each rejection lowers the level, until the number of waiting starts is within the number that may
 * wait under any load.
 */
export class TenantLoad {
  /** Maximum number of runs that the tenant recently had in flight, less one for each rejection. */
  #level = MIN_LEVEL;
  /** The level measured since {@link #levelAt}, for the next window. */
  #nextLevel = MIN_LEVEL;
  #levelAt = 0;
  /** Time of the last start that arrived while no start was waiting. */
  #burstAt = 0;
  /** Number of starts accepted and runs ended since {@link #burstAt}. */
  #accepted = 0;
  #ended = 0;
  /**
   * Number of runs that have ended since {@link #levelAt}, and the rate per ms at which runs ended in the previous
   * window.
   */
  #endedNow = 0;
  #endRate = 0;
  #rejectedAt = Number.NEGATIVE_INFINITY;

  /** Returns whether a start is accepted, and updates the level. */
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

  /**
   * Records a rejection. Also called for a rejection by the configured limit per tenant, so that the load of a tenant
   * does not stay at this limit (BD-5).
   */
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
    // The rate of the previous window is a lower bound, because at the beginning of a burst few of its runs have ended,
    // and without this bound every start would be accepted.
    const expected = Math.max(this.#ended, this.#endRate * (now - this.#burstAt));
    return this.#accepted >= BURST_RATIO * expected;
  }
}
