/** The limit before the first measurement. */
const INITIAL_LIMIT = 16;
/** The limit never falls below this number. */
export const MIN_ACTIVE_RUNS = 2;
/** The platform is overloaded if starts take more than this many times their unloaded duration plus SLACK_MS. */
const SLOWDOWN = 1.6;
/**
 * Added to the overload threshold, ms, because the duration of very short starts varies by more than a factor of
 * SLOWDOWN even without load.
 */
const SLACK_MS = 5;
/** Starts that take at most this many times their unloaded duration show that the platform has much spare capacity. */
const EASE = 1.2;
/**
 * Relative increase of the limit while there is spare capacity, and the minimum increase. The increase is moderate,
 * because several starts complete before their duration shows that the limit is too high.
 */
const INCREASE = 0.06;
const MIN_INCREASE = 0.5;
/**
 * Increase of the limit without spare capacity; small, because the number of active runs is already close to the
 * capacity.
 */
const SMALL_INCREASE = 0.2;
const DECREASE = 0.97;
/** Weights of a new measurement in the averages. */
const RECENT_WEIGHT = 0.2;
const UNLOADED_WEIGHT = 0.05;
/**
 * Time constant with which longer starts at the minimum limit raise the unloaded duration, ms: if they persist for
 * about this time, the machine has become slower permanently.
 */
const SLOWER_MS = 60_000;
/**
 * Maximum interval between two starts that is taken into account, ms, because a pause without starts gives no
 * information about their duration.
 */
const MAX_BETWEEN_MS = 500;

/** Conditions under which the duration of a start was observed. */
interface Observed {
  /** Average duration of the last starts, ms. */
  readonly recent: number;
  /** The number of active runs, including those that are being started. */
  readonly active: number;
  /** Time since the previous start, ms. */
  readonly betweenMs: number;
}

/**
 * Adaptive limit of active runs, above which further starts wait (BD-5). The limit is adapted to the duration of
 * starts, because a start contains only work of the platform and no model or tool calls. While starts take about as
 * long as without load, each start that reaches the limit raises it, regardless of how long runs take; the limit grows
 * faster while starts are hardly slower than without load. When starts take much longer (SLOWDOWN), the limit shrinks.
 */
export class ActiveLimit {
  #limit = INITIAL_LIMIT;
  #unloadedMs: number | undefined;
  #recentMs: number | undefined;
  #observedAt = Number.NEGATIVE_INFINITY;

  /** The limit of active runs. */
  get current(): number {
    return Math.floor(this.#limit);
  }

  /**
   * Adapts the limit to a start that has succeeded.
   * @param ms duration of the start, ms
   * @param active number of active runs, including those that are being started
   * @param now milliseconds of a monotonic clock
   */
  observe(ms: number, active: number, now: number): void {
    const recent = average(this.#recentMs, ms, RECENT_WEIGHT);
    this.#recentMs = recent;
    const betweenMs = Math.min(now - this.#observedAt, MAX_BETWEEN_MS);
    this.#observedAt = now;
    const unloaded = this.#learnUnloaded(ms, { recent, active, betweenMs });
    if (recent > unloaded * SLOWDOWN + SLACK_MS) {
      this.#limit = Math.max(MIN_ACTIVE_RUNS, this.#limit * DECREASE);
    } else if (active >= this.current) {
      const isEasy = recent <= unloaded * EASE;
      this.#limit += isEasy ? Math.max(MIN_INCREASE, this.#limit * INCREASE) : SMALL_INCREASE;
    }
  }

  /**
   * Updates and returns the estimated duration of a start without load. The estimate falls to the recent average at
   * once. It rises slowly, and only while at most one run is active or the limit is at its minimum: a store or a
   * machine can become slower permanently, but an overload of a few seconds must not raise the estimate.
   */
  #learnUnloaded(ms: number, { recent, active, betweenMs }: Observed): number {
    let unloaded = this.#unloadedMs;
    if (unloaded === undefined || recent < unloaded) unloaded = recent;
    else if (active <= 1) unloaded = average(unloaded, ms, UNLOADED_WEIGHT);
    else if (this.#limit <= MIN_ACTIVE_RUNS)
      unloaded = average(unloaded, ms, betweenMs / SLOWER_MS);
    this.#unloadedMs = unloaded;
    return unloaded;
  }
}

/** An exponentially weighted average. */
export function average(before: number | undefined, value: number, weight: number): number {
  return before === undefined ? value : before + (value - before) * weight;
}
