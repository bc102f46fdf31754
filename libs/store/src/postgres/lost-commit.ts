import { UnavailableError } from '@writ/kernel';
import { beginTransaction } from './begin-transaction.ts';
import type { PostgresSession } from './postgres-session.ts';
import { LockSet } from './write-locks.ts';

/** Opens another session on the same database. */
export type Reconnect = () => Promise<PostgresSession>;

/**
 * Asks the server for the status of a transaction after the connection was lost before the response to COMMIT. Returns
 * undefined if the transaction was committed, otherwise the error. If the server has crashed since then, it may have
 * reused the transaction id, so the status `committed` is ignored; the status `aborted` is always reliable.
 */
export async function outcomeOfLostCommit(
  lost: Pick<PostgresSession, 'serverIncarnation'>,
  transaction: string,
  { reconnect, cause }: { readonly reconnect: Reconnect; readonly cause: unknown },
): Promise<unknown> {
  try {
    const session = await reconnect();
    const everything = new LockSet();
    everything.add('everything');
    try {
      // The exclusive lock is granted only after the server has ended the lost transaction.
      await session.begin(beginTransaction(session, everything));
      const { text } = await session.run(`select pg_xact_status('${transaction}')`);
      if (text === 'committed' && session.serverIncarnation === lost.serverIncarnation)
        return undefined;
      if (text === 'aborted') return commitFailed(cause);
    } finally {
      await session.close();
    }
  } catch (error) {
    return commitUnknown(error);
  }
  return commitUnknown(cause);
}

/** The error for a commit that the server has rolled back. */
export function commitFailed(cause: unknown): UnavailableError {
  return new UnavailableError(
    'STORE_COMMIT_FAILED',
    'The commit failed; the transaction was rolled back.',
    {},
    { cause },
  );
}

function commitUnknown(cause: unknown): UnavailableError {
  return new UnavailableError(
    'STORE_COMMIT_UNKNOWN',
    'The connection was lost during a commit whose outcome is unknown; retry with the same request.',
    {},
    { cause },
  );
}
