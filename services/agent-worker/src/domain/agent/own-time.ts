/**
 * Converts a time by the clock of a peer to the own clock, both in milliseconds since 1970: an expiry counts from now
 * on, whatever the clocks show (BD-3).
 */
export type OwnTime = (timeMs: number) => number;
