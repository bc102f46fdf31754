import { AsyncLocalStorage } from 'node:async_hooks';
import { setImmediate as nextEventLoopTurn } from 'node:timers/promises';
import { InternalError, UnavailableError } from '@writ/kernel';
import { Kysely, type QueryResult, type Transaction } from 'kysely';
import type { CommitObserver } from '../commit-observer.ts';
import { isDiskFull } from '../disk-full.ts';
import type { StoreMarker } from '../marks/marker-file.ts';
import { markGuard, refuseLostFile } from '../marks/refuse-behind.ts';
import { connectDirectly, runAfterCommit, runBeforeCommit } from '../query/transaction-state.ts';
import { type Migrations, migrate } from '../schema/migrations.ts';
import type { Store, TransactionOptions } from '../store.ts';
import { withTransactionTimeout } from '../transaction-timeout.ts';
import { GroupCommit, type GroupCommitLimits } from './group-commit.ts';
import { MEMORY, SqliteConnection } from './sqlite-connection.ts';
import { readDriver, sqliteDialect, transactionDriver } from './sqlite-dialect.ts';
import { SqliteTransactions } from './sqlite-transactions.ts';

/** Limits of a store; each has a default. */
export interface StoreLimits extends GroupCommitLimits {
  /** Time limit of a transaction, excluding its wait in the queue, ms; a transaction that exceeds it is rolled back. */
  readonly transactionTimeoutMs: number;
  /** Maximum wait for a lock that another transaction or process holds, ms; on SQLite the wait blocks this process. */
  readonly busyTimeoutMs: number;
}

const DEFAULT_LIMITS: StoreLimits = {
  maxQueued: 10_000,
  maxBatch: 64,
  maxBatchMs: 10,
  transactionTimeoutMs: 10_000,
  busyTimeoutMs: 1_000,
};

/** The options of a store on either dialect. */
export interface StoreOptions {
  /** The migrations of the service by name, such as `0001_initial`. */
  readonly migrations: Migrations;
  /** Name of the service, for error messages and the database's own views. */
  readonly service: string;
  readonly limits?: Partial<StoreLimits>;
  readonly observer?: CommitObserver | undefined;
  /** The recorded mark of the database; an older or different database is rejected. */
  readonly marker?: StoreMarker | undefined;
}

/** Opens a SQLite file or an in-memory database and migrates it. */
export async function openSqliteStore<DB>(
  file: string,
  { migrations, service, limits, observer, marker }: StoreOptions,
): Promise<Store<DB>> {
  if (file !== MEMORY) refuseLostFile(file, marker);
  const label = file === MEMORY ? `the in-memory store of ${service}` : file;
  const all = { ...DEFAULT_LIMITS, ...limits };
  const writer = SqliteConnection.openWriter(file, label, all.busyTimeoutMs);
  try {
    // A separate group, so that migrations are not counted as commits of the store.
    const migrationDriver = transactionDriver(writer, new GroupCommit(writer, all), 'background');
    await migrate(
      new Kysely({ dialect: sqliteDialect(migrationDriver) }),
      migrations,
      label,
      markGuard(label, marker),
    );
    const reader = file === MEMORY ? undefined : SqliteConnection.openReader(file, label);
    return new SqliteStore<DB>(writer, reader, all, observer);
  } catch (error) {
    writer.close();
    throw error;
  }
}

class SqliteStore<DB> implements Store<DB> {
  readonly dialect = 'sqlite';
  readonly db: Kysely<DB>;
  readonly urgentDb: Kysely<DB>;
  readonly #writer: SqliteConnection;
  readonly #reader: SqliteConnection | undefined;
  readonly #group: GroupCommit;
  readonly #foreground: SqliteTransactions<DB>;
  readonly #urgent: SqliteTransactions<DB>;
  readonly #background: SqliteTransactions<DB>;
  readonly #relaxed: SqliteTransactions<DB>;
  readonly #observer: CommitObserver | undefined;
  readonly #timeoutMs: number;
  readonly #scopes = new AsyncLocalStorage<{ active: boolean }>();
  #closing: Promise<void> | undefined;

  constructor(
    writer: SqliteConnection,
    reader: SqliteConnection | undefined,
    limits: StoreLimits,
    observer: CommitObserver | undefined,
  ) {
    this.#writer = writer;
    this.#reader = reader;
    this.#group = new GroupCommit(writer, limits, observer);
    this.#observer = observer;
    this.#timeoutMs = limits.transactionTimeoutMs;
    this.#foreground = new SqliteTransactions(writer, this.#group, 'foreground');
    this.#urgent = new SqliteTransactions(writer, this.#group, 'urgent');
    this.#background = new SqliteTransactions(writer, this.#group, 'background');
    this.#relaxed = new SqliteTransactions(writer, this.#group, 'relaxed');
    this.db = new Kysely<DB>({
      dialect: sqliteDialect(
        readDriver(async ({ sql, parameters }) => this.#read(sql, parameters)),
      ),
    });
    this.urgentDb = this.db;
    connectDirectly(this.db, (sql, parameters) => this.#read(sql, parameters));
  }

  async checkAvailable(): Promise<void> {
    this.#refuseClosed();
    this.#writer.assertUsable();
  }

  get commits(): number {
    return this.#group.commits;
  }

  get backgroundCommits(): number {
    return this.#group.backgroundCommits;
  }

  async transaction<T>(
    work: (trx: Transaction<DB>) => Promise<T>,
    options: TransactionOptions = {},
  ): Promise<T> {
    this.#refuseInside('store.transaction');
    this.#refuseClosed();
    let used: Transaction<DB> | undefined;
    const running = this.#transactionsFor(options).run(async (trx) => {
      used = trx;
      const scope = { active: true };
      try {
        const worked = this.#scopes.run(scope, async () => {
          const value = await work(trx);
          await runBeforeCommit(trx);
          return value;
        });
        return await withTransactionTimeout(worked, this.#timeoutMs, this.#writer.label);
      } finally {
        // The callback has ended or timed out. Code of the callback that is still running may use the store again.
        scope.active = false;
      }
    }, options.commitDelayMs);
    const result = await running.catch((error: unknown) => {
      if (isDiskFull(error)) this.#observer?.diskFull();
      throw error;
    });
    if (used !== undefined) runAfterCommit(used);
    return result;
  }

  #transactionsFor(options: TransactionOptions): SqliteTransactions<DB> {
    const { urgent, background, relaxedDurability } = options;
    if (urgent === true) return this.#urgent;
    if (background !== true) return this.#foreground;
    return relaxedDurability === true ? this.#relaxed : this.#background;
  }

  close(): Promise<void> {
    this.#refuseInside('store.close');
    this.#closing ??= this.#drainAndClose();
    return this.#closing;
  }

  async #drainAndClose(): Promise<void> {
    // Waits one turn of the event loop, so that calls made before `close` are queued and complete: Kysely queues a
    // transaction only after some microtasks.
    await nextEventLoopTurn();
    await this.#group.drained();
    this.#reader?.close();
    this.#writer.close();
  }

  #read(
    sql: string,
    parameters: readonly unknown[],
  ): QueryResult<unknown> | Promise<QueryResult<unknown>> {
    this.#refuseInside('store.db');
    this.#refuseClosed();
    const reader = this.#reader;
    if (reader === undefined) return this.#readInTurn(sql, parameters);
    return this.#group.read(() => {
      this.#writer.assertUsable();
      return this.#committedBy(sql, reader).query(sql, parameters);
    });
  }

  /**
   * Returns the connection for a read of committed data. If no transaction is open, a select, which cannot write, uses
   * the writer, because the writer has cached the pages that the reader would read again after each write (CO-1). All
   * other reads use the reader.
   */
  #committedBy(sql: string, reader: SqliteConnection): SqliteConnection {
    return sql.startsWith('select ') && !this.#writer.inTransaction ? this.#writer : reader;
  }

  /**
   * Reads an in-memory database in a turn between transactions, because its only connection would also show uncommitted
   * data.
   */
  async #readInTurn(sql: string, parameters: readonly unknown[]): Promise<QueryResult<unknown>> {
    const turn = await this.#group.enter('read');
    try {
      this.#writer.run('PRAGMA query_only = ON');
      return this.#writer.query(sql, parameters);
    } finally {
      this.#writer.run('PRAGMA query_only = OFF');
      turn.leave();
    }
  }

  #refuseInside(what: string): void {
    if (this.#scopes.getStore()?.active !== true) return;
    throw new InternalError(
      'STORE_NESTED_TRANSACTION',
      `${what} was used inside a transaction of ${this.#writer.label}, which would deadlock; use the transaction that is passed to the callback.`,
    );
  }

  #refuseClosed(): void {
    if (this.#closing === undefined) return;
    throw new UnavailableError(
      'STORE_CLOSED',
      `The connection to ${this.#writer.label} is closed.`,
    );
  }
}
