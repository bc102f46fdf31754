import type { CompiledQuery, Kysely, QueryResult, Transaction } from 'kysely';

/** Runs a compiled query directly on the connection of a transaction. */
type RunQuery = (sql: string, parameters: readonly unknown[]) => QueryResult<unknown>;

const connections = new WeakMap<object, RunQuery>();

/** Lets compiled queries of `trx` bypass Kysely's layers of promises. */
export function connectDirectly<DB>(trx: Transaction<DB>, run: RunQuery): void {
  connections.set(trx, run);
}

/** Runs a compiled query with parameters: directly if the transaction allows it, otherwise through Kysely. */
export async function runCompiled<DB, R>(
  db: Kysely<DB>,
  compiled: CompiledQuery<R>,
  parameters: readonly unknown[],
): Promise<QueryResult<R>> {
  const run = connections.get(db);
  if (run === undefined) return await db.executeQuery({ ...compiled, parameters });
  return run(compiled.sql, parameters) as QueryResult<R>;
}
