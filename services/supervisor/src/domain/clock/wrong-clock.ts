/** Difference between two clocks that is tolerated, in milliseconds: the default of WRIT_CLOCK_LEEWAY. */
const CLOCK_LEEWAY_MS = 60_000;

/** Whether a recorded time is so far ahead that the clock which gave it was wrong: it must not outlast that clock (BD-3). */
export function isOfWrongClock(recorded: Date, now: Date): boolean {
  return recorded.getTime() - now.getTime() > CLOCK_LEEWAY_MS;
}
