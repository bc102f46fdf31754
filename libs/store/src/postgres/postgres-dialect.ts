import {
  type ColumnDefinitionNode,
  type DataTypeNode,
  type Dialect,
  type Driver,
  PostgresAdapter,
  PostgresIntrospector,
  PostgresQueryCompiler,
  sql,
  type TableMetadata,
} from 'kysely';

type IntrospectedDatabase = ConstructorParameters<typeof PostgresIntrospector>[0];

/** Kysely's PostgreSQL dialect with another driver, limited to one schema. */
export function postgresDialect(driver: Driver, schema: string): Dialect {
  return {
    createDriver: () => driver,
    createQueryCompiler: () => new PostgresCompiler(),
    createAdapter: () => new Adapter(),
    createIntrospector: (db) => new Introspector(db, schema),
  };
}

/** Maps declared column types to PostgreSQL types that store, compare and sort values as SQLite does. */
const COLUMN_TYPES: Readonly<Record<string, string>> = {
  // Sorts by code point whatever the collation of the database, because pagination continues after the last key.
  text: 'text collate "C"',
  // Stores every safe integer of JavaScript, while `integer` of PostgreSQL ends at 2^31. The type also distinguishes
  // these columns from bigint columns.
  integer: 'numeric(16)',
  real: 'double precision',
};

class PostgresCompiler extends PostgresQueryCompiler {
  #declaring = false;

  protected override visitColumnDefinition(node: ColumnDefinitionNode): void {
    this.#declaring = true;
    super.visitColumnDefinition(node);
    this.#declaring = false;
  }

  protected override visitDataType(node: DataTypeNode): void {
    const declared = this.#declaring ? COLUMN_TYPES[node.dataType] : undefined;
    if (declared === undefined) super.visitDataType(node);
    else this.append(declared);
    this.#declaring = false;
  }
}

class Adapter extends PostgresAdapter {
  // The migrating transaction holds the write lock; Kysely's lock would outlive a failure.
  override async acquireMigrationLock(): Promise<void> {
    // The migrating transaction already holds the lock.
  }

  override async releaseMigrationLock(): Promise<void> {
    // Released with the transaction.
  }
}

class Introspector extends PostgresIntrospector {
  readonly #db: IntrospectedDatabase;
  readonly #schema: string;

  constructor(db: IntrospectedDatabase, schema: string) {
    super(db);
    this.#db = db;
    this.#schema = schema;
  }

  /**
   * Returns the tables without their columns. Kysely's introspector reads every column of every schema, which takes
   * seconds in a large database.
   */
  override async getTables(): Promise<TableMetadata[]> {
    const schema = this.#schema;
    const { rows } = await sql<{ name: string }>`
      select relname::text as name from pg_catalog.pg_class
      join pg_catalog.pg_namespace on pg_namespace.oid = relnamespace
      where nspname = ${schema} and relkind in ('r', 'p') order by relname`.execute(this.#db);
    return rows.map(({ name }) => ({
      name,
      schema,
      isView: false,
      isForeign: false,
      columns: [],
    }));
  }
}
