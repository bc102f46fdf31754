import { DeadlineError } from '@writ/kernel';

/**
 * What `work` comes to, if it does so within `limitMs` milliseconds.
 * @param label what messages call the database
 * @throws DeadlineError STORE_TRANSACTION_TIMEOUT
 */
export async function withinTime<T>(work: Promise<T>, limitMs: number, label: string): Promise<T> {
  const { promise: expired, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => {
    reject(
      new DeadlineError(
        'STORE_TRANSACTION_TIMEOUT',
        `A transaction of ${label} took longer than ${limitMs} ms and was undone.`,
        { limit_ms: String(limitMs) },
      ),
    );
  }, limitMs);
  try {
    return await Promise.race([work, expired]);
  } finally {
    clearTimeout(timer);
  }
}
