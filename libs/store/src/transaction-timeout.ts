import { DeadlineError, withTimeout } from '@writ/kernel';

/**
 * Limits the time of a transaction's work.
 * @param label the database in error messages
 * @throws DeadlineError STORE_TRANSACTION_TIMEOUT
 */
export async function withTransactionTimeout<T>(
  work: Promise<T>,
  limitMs: number,
  label: string,
): Promise<T> {
  return await withTimeout<T>(work, limitMs, () => {
    throw new DeadlineError(
      'STORE_TRANSACTION_TIMEOUT',
      `A transaction of ${label} exceeded its time limit of ${limitMs} ms and was rolled back.`,
      { limit_ms: String(limitMs) },
    );
  });
}
