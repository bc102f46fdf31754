/**
 * Converts a time on a peer's clock to the local clock, both in milliseconds since 1970, so that clock skew does not
 * shift an expiry (BD-3).
 */
export type OwnTime = (timeMs: number) => number;
