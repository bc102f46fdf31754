import { type CreateTableBuilder, type Kysely, PostgresAdapter } from 'kysely';
import type { StoreDialect } from '../store.ts';

/** Which database `db` stands on; for the few places of a migration where they differ. */
export function dialectOf(db: Kysely<unknown>): StoreDialect {
  return db.getExecutor().adapter instanceof PostgresAdapter ? 'postgres' : 'sqlite';
}

/**
 * Adds a primary key that the database counts upward and never reuses. It reads as a number on
 * SQLite and as a bigint on PostgreSQL.
 */
export function addPosition<TB extends string, C extends string>(
  db: Kysely<unknown>,
  table: CreateTableBuilder<TB, C>,
): CreateTableBuilder<TB, C | 'position'> {
  return dialectOf(db) === 'sqlite'
    ? table.addColumn('position', 'integer', (column) => column.primaryKey().autoIncrement())
    : table.addColumn('position', 'bigint', (column) =>
        column.primaryKey().generatedAlwaysAsIdentity(),
      );
}
