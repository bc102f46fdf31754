import { InternalError, NotImplementedError } from '@writ/kernel';

const TRANSACTION_CONTROL = /^\s*(begin|commit|end|rollback|savepoint|release)\b/i;

/** @throws InternalError STORE_TRANSACTION_CONTROL when `sql` begins or ends a transaction */
export function refuseTransactionControl(sql: string): void {
  if (!TRANSACTION_CONTROL.test(sql)) return;
  throw new InternalError(
    'STORE_TRANSACTION_CONTROL',
    'Begin, commit, rollback and savepoints belong to the store; throw to undo a transaction.',
  );
}

/** What a query is told that was to be streamed. */
export function streamingRefused(): NotImplementedError {
  return new NotImplementedError(
    'STORE_STREAMING_UNSUPPORTED',
    'A query cannot be streamed, since it would hold its snapshot; read page by page, by key.',
  );
}
