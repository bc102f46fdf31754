import type { CompiledQuery, Kysely, QueryResult } from 'kysely';

/** Runs a compiled query directly on a connection; at once where the database is in this process. */
type RunQuery = (
  sql: string,
  parameters: readonly unknown[],
) => QueryResult<unknown> | Promise<QueryResult<unknown>>;

const connections = new WeakMap<object, RunQuery>();

/** Lets compiled queries of a store's `db` or of a transaction bypass Kysely's layers of promises. */
export function connectDirectly<DB>(db: Kysely<DB>, run: RunQuery): void {
  connections.set(db, run);
}

/** Runs a compiled query with parameters: directly if `db` is connected, otherwise through Kysely. */
export async function runCompiled<DB, R>(
  db: Kysely<DB>,
  compiled: CompiledQuery<R>,
  parameters: readonly unknown[],
): Promise<QueryResult<R>> {
  const run = connections.get(db);
  if (run === undefined) return await db.executeQuery({ ...compiled, parameters });
  return (await run(compiled.sql, parameters)) as QueryResult<R>;
}
