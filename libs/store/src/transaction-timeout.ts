import { DeadlineError, withTimeout } from '@writ/kernel';

/**
 * Rejects if `work`, the callback of a transaction, takes longer than `limitMs`.
 * @param label name of the database in error messages
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
