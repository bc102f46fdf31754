import {
  type ComparisonOperatorExpression,
  type CreateTableBuilder,
  type Generated,
  type Kysely,
  PostgresAdapter,
  type Selectable,
} from 'kysely';
import type { Migrations } from './migrations.ts';

type ColumnType =
  | 'text'
  | 'integer'
  | 'bigint'
  | 'real'
  | 'boolean'
  | 'timestamptz'
  | 'bytea'
  | 'position';

/** A column of a {@link table}; `T` is its type in Kysely. */
export class Column<T> {
  readonly type: ColumnType;
  readonly isNullable: boolean;
  readonly isUnique: boolean;
  readonly defaultTo: unknown;
  /** Never set at run time; only binds the type parameter `T`. */
  declare readonly columnType: T;

  constructor(
    type: ColumnType,
    { isNullable = false, isUnique = false, defaultTo }: ColumnOptions = {},
  ) {
    this.type = type;
    this.isNullable = isNullable;
    this.isUnique = isUnique;
    this.defaultTo = defaultTo;
  }

  /** Returns the same column, but nullable. */
  nullable(): Column<T | null> {
    return new Column(this.type, { ...this, isNullable: true });
  }

  /** Returns the same column with a default, so that an insert may omit the column. */
  default(value: T): Column<Generated<T>> {
    return new Column(this.type, { ...this, defaultTo: value });
  }

  /** Returns the same column with a unique constraint. */
  unique(): Column<T> {
    return new Column(this.type, { ...this, isUnique: true });
  }
}

interface ColumnOptions {
  readonly isNullable?: boolean;
  readonly isUnique?: boolean;
  readonly defaultTo?: unknown;
}

/**
 * The column types of a {@link table}. A column other than `position` is read as the same JavaScript type on SQLite and
 * PostgreSQL.
 */
export const column = {
  /** Text, compared and sorted by code point. */
  text: <T extends string = string>() => new Column<T>('text'),
  /** A number without fraction, exact up to 2^53. */
  integer: () => new Column<number>('integer'),
  /** An exact 64-bit integer (EM-4). */
  bigint: () => new Column<bigint>('bigint'),
  /** A floating-point number. */
  real: () => new Column<number>('real'),
  boolean: () => new Column<boolean>('boolean'),
  /** A point in time, taken from the clock of the service, never from SQL. */
  timestamp: () => new Column<Date>('timestamptz'),
  bytes: () => new Column<Uint8Array>('bytea'),
  /**
   * The primary key `position`, which the database increments and never reuses; a number on SQLite, a bigint on
   * PostgreSQL.
   */
  position: () => new Column<Generated<number | bigint>>('position'),
} as const;

type Columns = Readonly<Record<string, Column<unknown>>>;

/** The definition of a {@link table}; `N` is the union of its column names. */
export interface TableOptions<C extends Columns, N extends string = keyof C & string> {
  readonly columns: C;
  /** Omitted for a table with a `position`. */
  readonly primaryKey?: readonly N[];
  /** Columns that are unique together, by the name of the constraint. */
  readonly unique?: Readonly<Record<string, readonly N[]>>;
  /** Indexes by name. */
  readonly indexes?: Readonly<Record<string, TableIndex<N>>>;
}

interface TableIndex<N extends string> {
  readonly on: readonly N[];
  /** The condition of a partial index, or several conditions that must all be true. */
  readonly where?: Condition<N> | readonly Condition<N>[];
}

type Condition<N extends string> = readonly [N, ComparisonOperatorExpression, unknown];

/** One table: its name, its columns and how to create it. */
export interface Table<N extends string = string, C extends Columns = Columns> {
  readonly name: N;
  readonly definition: TableOptions<C>;
  /** The names of all columns in the order of their declaration, for `select()` and `pickColumns()`. */
  readonly columns: readonly (keyof C & string)[];
  /** Creates the table with its keys and indexes; for a migration. */
  create(db: Kysely<unknown>): Promise<void>;
}

/** The Kysely type of a table. */
export type TableOf<T> =
  T extends Table<string, infer C> ? { readonly [K in keyof C]: C[K]['columnType'] } : never;

/** A row of a table as a query returns it. */
export type RowOf<T> = Selectable<TableOf<T>>;

/** The Kysely type of a database with these tables. */
export type DatabaseOf<T extends readonly Table[]> = {
  [X in T[number] as X['name']]: TableOf<X>;
};

/**
 * Declares a table once: its row type, its column list and its DDL on both dialects follow from it.
 *
 * @example
 * ```ts
 * import { column, type RowOf, table } from '@writ/store';
 *
 * const notes = table('notes', {
 *   columns: {
 *     tenant: column.text(),
 *     name: column.text(),
 *     size: column.bigint(),
 *     deleted_at: column.timestamp().nullable(),
 *   },
 *   primaryKey: ['tenant', 'name'],
 *   indexes: { notes_deleted: { on: ['deleted_at'], where: ['deleted_at', 'is not', null] } },
 * });
 * type Note = RowOf<typeof notes>; // { tenant: string; name: string; size: bigint; deleted_at: Date | null }
 * ```
 */
export function table<const N extends string, C extends Columns>(
  name: N,
  definition: TableOptions<C>,
): Table<N, C> {
  const columns = Object.keys(definition.columns);
  return { name, definition, columns, create: (db) => createTable(db, name, definition) };
}

/**
 * Returns the migrations of a database whose schema has not changed since its first release: one migration that creates
 * all tables.
 */
export function initialMigration(tables: readonly Pick<Table, 'create'>[]): Migrations {
  return {
    '0001_initial': {
      async up(db) {
        for (const { create } of tables) await create(db);
      },
    },
  };
}

async function createTable(
  db: Kysely<unknown>,
  name: string,
  { columns, primaryKey, unique = {}, indexes = {} }: TableOptions<Columns, string>,
): Promise<void> {
  let creating: CreateTableBuilder<string, string> = db.schema.createTable(name);
  for (const [columnName, spec] of Object.entries(columns)) {
    creating = addColumn(db, creating, columnName, spec);
  }
  if (primaryKey !== undefined) {
    creating = creating.addPrimaryKeyConstraint(`${name}_pkey`, [...primaryKey]);
  }
  for (const [constraint, on] of Object.entries(unique)) {
    creating = creating.addUniqueConstraint(constraint, [...on]);
  }
  await creating.execute();
  for (const [index, { on, where = [] }] of Object.entries(indexes)) {
    let creatingIndex = db.schema
      .createIndex(index)
      .on(name)
      .columns([...on]);
    for (const condition of isOne(where) ? [where] : where) {
      creatingIndex = creatingIndex.where(...condition);
    }
    await creatingIndex.execute();
  }
}

function isOne<N extends string>(
  where: Condition<N> | readonly Condition<N>[],
): where is Condition<N> {
  return typeof where[0] === 'string';
}

function addColumn(
  db: Kysely<unknown>,
  creating: CreateTableBuilder<string, string>,
  name: string,
  { type, isNullable, isUnique, defaultTo }: Column<unknown>,
): CreateTableBuilder<string, string> {
  if (type === 'position') return addPosition(db, creating);
  return creating.addColumn(name, type, (builder) => {
    const nullable = isNullable ? builder : builder.notNull();
    const keyed = isUnique ? nullable.unique() : nullable;
    return defaultTo === undefined ? keyed : keyed.defaultTo(defaultTo);
  });
}

/** Adds a primary key that the database increments. */
function addPosition<TB extends string, C extends string>(
  db: Kysely<unknown>,
  creating: CreateTableBuilder<TB, C>,
): CreateTableBuilder<TB, C | 'position'> {
  return db.getExecutor().adapter instanceof PostgresAdapter
    ? creating.addColumn('position', 'bigint', (builder) =>
        builder.primaryKey().generatedAlwaysAsIdentity(),
      )
    : creating.addColumn('position', 'integer', (builder) => builder.primaryKey().autoIncrement());
}
