import { InternalError } from '@writ/kernel';
import {
  type CompiledQuery,
  type DatabaseConnection,
  type Dialect,
  type Driver,
  type QueryResult,
  SqliteAdapter,
  SqliteIntrospector,
  SqliteQueryCompiler,
  sql,
  type TableMetadata,
} from 'kysely';
import { refuseTransactionControl, streamingRefused } from '../connection-refusals.ts';
import { transactionLost } from './commit-batch.ts';
import type { GroupCommit } from './group-commit.ts';
import type { SqliteConnection } from './sqlite-connection.ts';
import type { Turn, TurnKind } from './turn.ts';

type IntrospectedDatabase = ConstructorParameters<typeof SqliteIntrospector>[0];

/** Kysely's SQLite dialect with another driver. */
export function sqliteDialect(driver: Driver): Dialect {
  return {
    createDriver: () => driver,
    createQueryCompiler: () => new SqliteQueryCompiler(),
    createAdapter: () => new Adapter(),
    createIntrospector: (db) => new Introspector(db),
  };
}

class Adapter extends SqliteAdapter {
  // The drivers below serialize transactions; Kysely's lock would serialize whole batches.
  override get supportsMultipleConnections(): boolean {
    return true;
  }

  // SQLite supports transactional DDL, so an interrupted migration is rolled back.
  override get supportsTransactionalDdl(): boolean {
    return true;
  }
}

class Introspector extends SqliteIntrospector {
  readonly #db: IntrospectedDatabase;

  constructor(db: IntrospectedDatabase) {
    super(db);
    this.#db = db;
  }

  /**
   * Returns the tables without their columns: migrations need only the names, and reading columns takes a tenth of the
   * start time of a service.
   */
  override async getTables(): Promise<TableMetadata[]> {
    const { rows } = await sql<{ name: string }>`
      select name from sqlite_master
      where type = 'table' and name not like 'sqlite_%' order by name`.execute(this.#db);
    return rows.map(({ name }) => ({ name, isView: false, isForeign: false, columns: [] }));
  }
}

/** Returns a driver whose transactions run in turns of `group` and share commits. */
export function transactionDriver(
  connection: SqliteConnection,
  group: GroupCommit,
  kind: Exclude<TurnKind, 'read'>,
): Driver {
  return {
    init: done,
    acquireConnection: async () => new TransactionConnection(connection, await group.enter(kind)),
    beginTransaction: async (held) => turnOf(held).begin(),
    commitTransaction: (held) => turnOf(held).finish(),
    rollbackTransaction: async (held) => turnOf(held).leave(),
    releaseConnection: async (held) => turnOf(held).leave(),
    destroy: done,
  };
}

/** Returns a driver for reads outside of transactions, which it runs with `query`. */
export function readDriver(
  query: (compiled: CompiledQuery) => Promise<QueryResult<unknown>>,
): Driver {
  const connection = new ReadConnection(query);
  return {
    init: done,
    acquireConnection: async () => connection,
    beginTransaction: refuseTransaction,
    commitTransaction: refuseTransaction,
    rollbackTransaction: refuseTransaction,
    releaseConnection: done,
    destroy: done,
  };
}

export class TransactionConnection implements DatabaseConnection {
  readonly turn: Turn;
  readonly #connection: SqliteConnection;

  constructor(connection: SqliteConnection, turn: Turn) {
    this.#connection = connection;
    this.turn = turn;
  }

  async executeQuery<R>({ sql, parameters }: CompiledQuery): Promise<QueryResult<R>> {
    return this.run(sql, parameters);
  }

  /** Runs one query while the transaction is open. */
  run<R>(sql: string, parameters: readonly unknown[]): QueryResult<R> {
    if (this.turn.state !== 'open') {
      throw new InternalError(
        'STORE_TRANSACTION_ENDED',
        'A query ran after the end of its transaction; await every query inside the transaction callback.',
      );
    }
    refuseTransactionControl(sql);
    // Without this check, a query after a statement that ended the transaction would be committed on its own.
    if (!this.#connection.inTransaction) throw transactionLost();
    return this.#connection.query<R>(sql, parameters);
  }

  streamQuery(): never {
    throw streamingRefused();
  }
}

class ReadConnection implements DatabaseConnection {
  readonly #query: (compiled: CompiledQuery) => Promise<QueryResult<unknown>>;

  constructor(query: (compiled: CompiledQuery) => Promise<QueryResult<unknown>>) {
    this.#query = query;
  }

  async executeQuery<R>(compiled: CompiledQuery): Promise<QueryResult<R>> {
    return (await this.#query(compiled)) as QueryResult<R>;
  }

  streamQuery(): never {
    throw streamingRefused();
  }
}

function turnOf(connection: DatabaseConnection): Turn {
  if (connection instanceof TransactionConnection) return connection.turn;
  throw new InternalError('STORE_WRONG_CONNECTION', 'A connection was returned to another driver.');
}

async function done(): Promise<void> {
  // SqliteStore opens and closes the connections.
}

async function refuseTransaction(): Promise<never> {
  throw new InternalError(
    'STORE_READ_ONLY',
    'store.db is read-only; use store.transaction instead of db.transaction.',
  );
}
