/** Difference between two clocks that is tolerated, in milliseconds: the default of WRIT_CLOCK_LEEWAY. */
const CLOCK_LEEWAY_MS = 60_000;

/**
 * Whether a recorded time is so far ahead that a wrong clock gave it. Such a time must have no effect once that clock
 * is corrected (BD-3).
 */
export function isOfWrongClock(recorded: Date, now: Date): boolean {
  return recorded > latestRecorded(now);
}

/** The latest time that a clock can have recorded until `now` unless it is wrong; see {@link isOfWrongClock}. */
export function latestRecorded(now: Date): Date {
  return new Date(now.getTime() + CLOCK_LEEWAY_MS);
}
