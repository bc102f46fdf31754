/** Limits of an exponential back-off. */
export interface BackoffOptions {
  /** Upper bound of the first delay, ms; doubles with each attempt. */
  readonly baseMs: number;
  /** Upper bound of any delay, ms. */
  readonly maxMs: number;
}

/**
 * Returns the delay before the next attempt, ms: exponential with full jitter, so that callers that failed at the same
 * time do not retry at the same time.
 *
 * @param attempt number of failed attempts, from 1
 * @param random a number in [0, 1]; 1 for the upper bound itself, without jitter
 * @example
 * ```ts
 * import { backoffMs } from '@writ/kernel';
 *
 * const delayMs: number = backoffMs(3, { baseMs: 50, maxMs: 2_000 }); // from 0 to 200
 * ```
 */
export function backoffMs(
  attempt: number,
  { baseMs, maxMs }: BackoffOptions,
  random: number = Math.random(),
): number {
  const ceiling = Math.min(maxMs, baseMs * 2 ** Math.min(Math.max(0, attempt - 1), 30));
  return Math.ceil(random * ceiling);
}
