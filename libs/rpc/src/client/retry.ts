import { setTimeout as sleep } from 'node:timers/promises';
import { backoffMs } from '@writ/kernel';

/** Retries of idempotent calls: exponential back-off with full jitter. */
export interface RetryOptions {
  /** Upper bound of the first delay, ms; doubles with each attempt. Default 50. */
  readonly initialDelayMs?: number;
  /** Upper bound of every delay, ms. Default 2,000. */
  readonly maxDelayMs?: number;
  /** Maximum number of attempts, including the first. Default 8. */
  readonly maxAttempts?: number;
}

interface Attempts<T> {
  readonly work: (attempt: number) => Promise<T>;
  readonly isRetryable: (error: unknown) => boolean;
  /** Called before each retry with the error of the previous attempt. */
  readonly onRetry: (error: unknown) => void;
  /** Monotonic time, ms, after which no attempt starts. */
  readonly deadlineAt: number;
  readonly signal: AbortSignal | undefined;
}

/**
 * Runs `work` and retries it on retryable errors. Throws the last error if the error is not retryable, all attempts are
 * used, or the next delay would exceed the deadline. An abort ends a delay at once.
 */
export async function retrying<T>(
  { initialDelayMs = 50, maxDelayMs = 2_000, maxAttempts = 8 }: RetryOptions,
  { work, isRetryable, onRetry, deadlineAt, signal }: Attempts<T>,
): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await work(attempt);
    } catch (error) {
      if (attempt >= maxAttempts || !isRetryable(error)) throw error;
      const delayMs = backoffMs(attempt, { baseMs: initialDelayMs, maxMs: maxDelayMs });
      if (performance.now() + delayMs >= deadlineAt) throw error;
      await sleep(delayMs, undefined, { signal });
      onRetry(error);
    }
  }
}
