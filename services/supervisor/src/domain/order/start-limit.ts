/** The limit before the first measurement. */
const INITIAL_LIMIT = 64;
/** The limit never falls below this number. */
export const MIN_ACTIVE_RUNS = 4;
/** The platform is overloaded when a start takes this many times as long as without load… */
const SLOWDOWN = 2;
/** …and this much longer, ms: very short starts vary by a multiple without any load. */
const SLACK_MS = 5;
/** Up to this many times as long as without load, a start shows that the platform can do much more. */
const EASE = 1.25;
/** The share by which the limit grows then; otherwise it grows by one. */
const INCREASE = 0.25;
const DECREASE = 0.95;
/** Weights of a new measurement in the averages. */
const RECENT_WEIGHT = 0.2;
const UNLOADED_WEIGHT = 0.05;

/**
 * How many runs may be active before further starts wait (BD-5). The duration of a start is work of the platform
 * alone, without model and tools: while it is about as short as without load, the limit grows with each start, however
 * long runs take, and quickly while starts are as short as ever; when it has doubled, the limit shrinks.
 */
export class StartLimit {
  #limit = INITIAL_LIMIT;
  #unloadedMs: number | undefined;
  #recentMs: number | undefined;

  /** The limit of active runs. */
  get current(): number {
    return Math.floor(this.#limit);
  }

  /**
   * Adapts the limit to a start that has succeeded.
   * @param ms its duration
   * @param active the active runs, including those that are being started
   */
  observe(ms: number, active: number): void {
    const recent = average(this.#recentMs, ms, RECENT_WEIGHT);
    this.#recentMs = recent;
    if (this.#unloadedMs === undefined || recent < this.#unloadedMs) this.#unloadedMs = recent;
    // A store or a machine can become slower for good; then the slower starts are those without load.
    else if (active <= MIN_ACTIVE_RUNS) {
      this.#unloadedMs = average(this.#unloadedMs, ms, UNLOADED_WEIGHT);
    }
    if (recent > this.#unloadedMs * SLOWDOWN + SLACK_MS) {
      this.#limit = Math.max(MIN_ACTIVE_RUNS, this.#limit * DECREASE);
    } else if (active >= this.current) {
      this.#limit += recent <= this.#unloadedMs * EASE ? Math.ceil(this.#limit * INCREASE) : 1;
    }
  }
}

/** An exponentially weighted average. */
export function average(before: number | undefined, value: number, weight: number): number {
  return before === undefined ? value : before + (value - before) * weight;
}
