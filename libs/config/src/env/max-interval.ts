/**
 * Maximum of a variable that becomes the delay of a timer, ms: 24 days. Node reduces the delay of a timer that is longer
 * than 2³¹ − 1 ms, about 24.8 days, to 1 ms.
 */
export const MAX_INTERVAL_MS = 24 * 24 * 60 * 60 * 1000;
