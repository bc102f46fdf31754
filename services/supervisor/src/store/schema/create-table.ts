import type { CreateTableBuilder, Kysely } from 'kysely';

/** Column types that both dialects read as the same type. */
type ColumnType = 'text' | 'integer' | 'bigint' | 'real' | 'boolean' | 'timestamptz' | 'bytea';

/** A column type; with a question mark, it may be null. */
export type ColumnKind = ColumnType | `${ColumnType}?`;

/** Adds columns to a table that is being created; those without a question mark are NOT NULL. */
export function withColumns<TB extends string, C extends string>(
  table: CreateTableBuilder<TB, C>,
  columns: Readonly<Record<string, ColumnKind>>,
): CreateTableBuilder<TB, string> {
  let builder: CreateTableBuilder<TB, string> = table;
  for (const [name, kind] of Object.entries(columns)) {
    const type = kind.replace('?', '') as ColumnType;
    builder = builder.addColumn(name, type, (column) =>
      kind.endsWith('?') ? column : column.notNull(),
    );
  }
  return builder;
}

/** Creates a table with a primary key and the unique constraints `unique`. */
export async function createTable(
  db: Kysely<unknown>,
  name: string,
  columns: Readonly<Record<string, ColumnKind>>,
  primaryKey: readonly string[],
  unique: Readonly<Record<string, readonly string[]>> = {},
): Promise<void> {
  let builder = withColumns(db.schema.createTable(name), columns).addPrimaryKeyConstraint(
    `${name}_key`,
    [...primaryKey],
  );
  for (const [constraint, key] of Object.entries(unique)) {
    builder = builder.addUniqueConstraint(constraint, [...key]);
  }
  await builder.execute();
}
