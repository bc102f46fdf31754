import {
  type ColumnDefinitionNode,
  type DatabaseMetadataOptions,
  type DataTypeNode,
  type Dialect,
  type Driver,
  PostgresAdapter,
  PostgresIntrospector,
  PostgresQueryCompiler,
  type TableMetadata,
} from 'kysely';

/** Kysely's PostgreSQL, with a driver of our own, that sees one schema. */
export function postgresDialect(driver: Driver, schema: string): Dialect {
  return {
    createDriver: () => driver,
    createQueryCompiler: () => new PostgresCompiler(),
    createAdapter: () => new Adapter(),
    createIntrospector: (db) => new Introspector(db, schema),
  };
}

/** What a column is declared as, so that it holds, compares and sorts as the same one on SQLite. */
const COLUMN_TYPES: Readonly<Record<string, string>> = {
  // By code point, whatever the database sorts by: pages go on after the last key of the one before.
  text: 'text collate "C"',
  // All integers of a number, where PostgreSQL's own integer ends at 2^31; tells them from bigint, too.
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
  // The transaction that migrates holds the store's lock; Kysely's own would outlive a failure.
  override async acquireMigrationLock(): Promise<void> {
    // Taken already.
  }

  override async releaseMigrationLock(): Promise<void> {
    // Ends with the transaction.
  }
}

class Introspector extends PostgresIntrospector {
  readonly #schema: string;

  constructor(db: ConstructorParameters<typeof PostgresIntrospector>[0], schema: string) {
    super(db);
    this.#schema = schema;
  }

  override async getTables(options?: DatabaseMetadataOptions): Promise<TableMetadata[]> {
    const tables = await super.getTables(options);
    return tables.filter(({ schema }) => schema === this.#schema);
  }
}
