/** Tolerated difference between two clocks, in milliseconds, equal to the default of WRIT_CLOCK_LEEWAY. */
const CLOCK_LEEWAY_MS = 60_000;

/**
 * Whether a recorded time is so far in the future that a wrong clock must have recorded it. Such a time must have no
 * effect once that clock is corrected (BD-3).
 */
export function isOfWrongClock(recorded: Date, now: Date): boolean {
  return recorded > latestRecorded(now);
}

/**
 * Returns the latest time that a clock within the leeway can have recorded by `now`. {@link isOfWrongClock} uses it.
 */
export function latestRecorded(now: Date): Date {
  return new Date(now.getTime() + CLOCK_LEEWAY_MS);
}
