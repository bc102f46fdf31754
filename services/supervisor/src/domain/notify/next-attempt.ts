import { backoffMs } from '@writ/kernel';

/** Maximum number of attempts; with their delays, they span about a day. */
const MAX_ATTEMPTS = 60;
const MAX_DELAY_MS = 60 * 60_000;

/** Result of an attempt to deliver a notification. */
export interface DeliveryAttempt {
  /** Number of attempts, including this one. */
  readonly attempt: number;
  /** Why the attempt failed; undefined if the notification was delivered. */
  readonly problem: string | undefined;
  /** Whether a later attempt could succeed. */
  readonly isRetryable: boolean;
}

/** State of a notification after an attempt. */
export type DeliveryState = 'delivered' | 'failed' | 'open';

/** Returns the state of a notification after an attempt: `open` if it is attempted again, `failed` if not (PE-2). */
export function stateAfter({ attempt, problem, isRetryable }: DeliveryAttempt): DeliveryState {
  if (problem === undefined) return 'delivered';
  return isRetryable && attempt < MAX_ATTEMPTS ? 'open' : 'failed';
}

/**
 * Returns the time before the attempt after `attempt`, ms: exponential with jitter, at most an hour.
 * @param retryMs upper bound of the first delay, ms
 */
export function retryDelayMs(attempt: number, retryMs: number): number {
  return backoffMs(attempt, { baseMs: retryMs, maxMs: MAX_DELAY_MS });
}
