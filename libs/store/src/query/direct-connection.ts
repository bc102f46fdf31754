import type { CompiledQuery, Kysely, QueryResult, Transaction } from 'kysely';

/** Runs a compiled query at once, on the connection of one transaction. */
type RunQuery = (sql: string, parameters: readonly unknown[]) => QueryResult<unknown>;

const connections = new WeakMap<object, RunQuery>();

/** Lets compiled queries of `trx` go to its connection without Kysely's layers of promises. */
export function connectDirectly<DB>(trx: Transaction<DB>, run: RunQuery): void {
  connections.set(trx, run);
}

/** Runs a compiled query with these parameters: directly in a transaction that allows it, else as Kysely does. */
export async function runCompiled<DB, R>(
  db: Kysely<DB>,
  compiled: CompiledQuery<R>,
  parameters: readonly unknown[],
): Promise<QueryResult<R>> {
  const run = connections.get(db);
  if (run === undefined) return await db.executeQuery({ ...compiled, parameters });
  return run(compiled.sql, parameters) as QueryResult<R>;
}
