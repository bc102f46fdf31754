/**
 * Converts a time by the clock of a peer to the own clock, both in milliseconds since 1970, so that a difference
 * between the clocks does not shift an expiry (BD-3).
 */
export type OwnTime = (timeMs: number) => number;
