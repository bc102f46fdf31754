import { setTimeout as sleep } from 'node:timers/promises';

/** How a client makes idempotent calls again: exponential back-off with full jitter. */
export interface RetryOptions {
  /** Upper bound of the first wait, ms; doubles with each attempt. Default 50. */
  readonly initialDelayMs?: number;
  /** Upper bound of any wait, ms. Default 2,000. */
  readonly maxDelayMs?: number;
  /** Most attempts, the first included. Default 8. */
  readonly maxAttempts?: number;
}

interface Attempts<T> {
  readonly work: (attempt: number) => Promise<T>;
  readonly isRetryable: (error: unknown) => boolean;
  /** Milliseconds of the epoch after which there is no use in trying. */
  readonly deadlineAt: number;
  readonly signal: AbortSignal | undefined;
}

/**
 * Does `work` until it succeeds, fails for good, the attempts are used up, or the next wait would
 * pass the deadline; then throws what `work` threw last. An abort ends a wait at once.
 */
export async function retrying<T>(
  { initialDelayMs = 50, maxDelayMs = 2_000, maxAttempts = 8 }: RetryOptions,
  { work, isRetryable, deadlineAt, signal }: Attempts<T>,
): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await work(attempt);
    } catch (error) {
      if (attempt >= maxAttempts || !isRetryable(error)) throw error;
      const bound = Math.min(maxDelayMs, initialDelayMs * 2 ** (attempt - 1));
      const delayMs = Math.random() * bound;
      if (Date.now() + delayMs >= deadlineAt) throw error;
      await sleep(delayMs, undefined, { signal });
    }
  }
}
