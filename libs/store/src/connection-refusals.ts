import { InternalError, NotImplementedError } from '@writ/kernel';

const TRANSACTION_CONTROL = /^\s*(begin|commit|end|rollback|savepoint|release)\b/i;

/** Throws InternalError STORE_TRANSACTION_CONTROL if `sql` begins or ends a transaction or uses a savepoint. */
export function refuseTransactionControl(sql: string): void {
  if (!TRANSACTION_CONTROL.test(sql)) return;
  throw new InternalError(
    'STORE_TRANSACTION_CONTROL',
    'Transaction control statements are reserved for the store; throw to roll a transaction back.',
  );
}

/** The error for a streaming query. */
export function streamingRefused(): NotImplementedError {
  return new NotImplementedError(
    'STORE_STREAMING_UNSUPPORTED',
    'Streaming queries are not supported, because they hold a snapshot; read in pages by key.',
  );
}
