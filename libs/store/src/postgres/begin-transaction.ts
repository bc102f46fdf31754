import type { PostgresSession } from './postgres-session.ts';
import type { LockSet } from './write-locks.ts';

/** Maximum number of columns per select; the server allows 1,664. */
const MAX_COLUMNS = 1_000;

/**
 * Returns the SQL that begins a transaction, acquires the locks with their own timeout, sets the statement timeout and
 * selects the transaction id.
 */
export function beginTransaction({ statementTimeoutMs }: PostgresSession, locks: LockSet): string {
  // The server evaluates the columns of a select in order, and one statement with all expressions is cheaper than one
  // statement for each.
  const columns = [
    ...locks.calls,
    `set_config('statement_timeout', '${statementTimeoutMs}', true)`,
    'pg_current_xact_id()::text',
  ];
  const statements = ['begin isolation level read committed read write'];
  for (let from = 0; from < columns.length; from += MAX_COLUMNS) {
    statements.push(`select ${columns.slice(from, from + MAX_COLUMNS).join(', ')}`);
  }
  return statements.join('; ');
}
