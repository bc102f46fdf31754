/** The limit before the first measurement. */
const INITIAL_LIMIT = 16;
/** The limit never falls below this number. */
export const MIN_ACTIVE_RUNS = 2;
/** The platform is overloaded when a start takes this many times as long as without load… */
const SLOWDOWN = 1.6;
/** …and this much longer, ms: very short starts vary by a multiple without any load. */
const SLACK_MS = 5;
/** Up to this many times as long as without load, a start shows that the platform can do much more. */
const EASE = 1.2;
/** The share by which the limit grows then, and the least: several starts pass before a limit too high shows in their duration. */
const INCREASE = 0.06;
const MIN_INCREASE = 0.5;
/** By how much it grows otherwise: little, since as many runs are active as the platform can serve. */
const SMALL_INCREASE = 0.2;
const DECREASE = 0.97;
/** Weights of a new measurement in the averages. */
const RECENT_WEIGHT = 0.2;
const UNLOADED_WEIGHT = 0.05;
/** A machine is slower permanently when starts have taken longer for about this time at the least limit, ms. */
const SLOWER_MS = 60_000;
/** Longest interval between two starts that counts, ms: a pause without starts shows nothing about their duration. */
const MAX_BETWEEN_MS = 500;

/** What a start shows beside its duration. */
interface Observed {
  /** Average duration of the last starts, ms. */
  readonly recent: number;
  /** The active runs, including those that are being started. */
  readonly active: number;
  /** Time since the start before it, ms. */
  readonly betweenMs: number;
}

/**
 * How many runs may be active before further starts wait (BD-5). The duration of a start is work of the platform
 * alone, without model and tools: while it is about as short as without load, the limit grows with each start that
 * reaches it, however long runs take, and faster while starts are as short as ever; when starts take over half as long
 * again, the limit shrinks.
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
   * @param ms its duration
   * @param active the active runs, including those that are being started
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
   * Updates and returns the duration of a start without load. It falls to the recent average at once; it rises slowly,
   * with each start while at most one run is active or the limit is at its minimum, because a store or a machine can
   * become slower permanently, whereas an overload of a few seconds must not raise it.
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
