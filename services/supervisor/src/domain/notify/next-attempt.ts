import { backoffMs } from '@writ/kernel';

/** Maximum number of attempts; with their delays, they span about a day. */
const MAX_ATTEMPTS = 60;
const MAX_DELAY_MS = 60 * 60_000;
/** The problem of a notification whose endpoint is no longer configured; another attempt cannot succeed. */
export const NO_ENDPOINT = 'no_endpoint';

/** State of a notification. */
export type NotificationState = 'open' | 'delivered' | 'failed';

/**
 * Returns the state of a notification after an attempt: `open` if it is attempted again, `failed` if not (PE-2).
 * @param attempt number of the attempt, from 1
 * @param problem why it failed; undefined if the notification was delivered
 */
export function stateAfter(attempt: number, problem: string | undefined): NotificationState {
  if (problem === undefined) return 'delivered';
  return problem === NO_ENDPOINT || attempt >= MAX_ATTEMPTS ? 'failed' : 'open';
}

/**
 * Returns the delay after an attempt, ms: exponential with jitter, at most an hour.
 * @param attempt number of the attempt, from 1
 * @param retryMs upper bound of the first delay, ms
 */
export function retryDelayMs(attempt: number, retryMs: number): number {
  return backoffMs(attempt, { baseMs: retryMs, maxMs: MAX_DELAY_MS });
}
