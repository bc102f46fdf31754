import { closeSync, fdatasync, mkdirSync, openSync } from 'node:fs';
import { dirname } from 'node:path';
import { DatabaseSync, type SQLOutputValue, type StatementSync } from 'node:sqlite';
import { UnavailableError } from '@writ/kernel';
import type { QueryResult } from 'kysely';
import { CacheGeneration } from '../query/transaction-state.ts';
import { translateSqliteError } from './sqlite-errors.ts';
import { type ColumnReader, readerFor, toBound } from './sqlite-values.ts';

/** The name of an in-memory database. */
export const MEMORY = ':memory:';

const STATEMENT_CACHE_SIZE = 500;
/**
 * Size of the write-ahead log in pages (16 MB) at which a commit runs a checkpoint. The checkpoint blocks the thread
 * for two fsyncs, but copies each page only once, even if several commits changed it.
 */
const CHECKPOINT_PAGES = 4_000;
// Busy timeout of readers, which wait only while a write-ahead log is recovered.
const READ_TIMEOUT_MS = 1_000;
const WRITE = /^\s*(with\b.*\b)?(insert|update|delete|replace)\b/is;
const SCHEMA_CHANGE = /^\s*(create|alter|drop)\b/i;

interface PreparedQuery {
  readonly statement: StatementSync;
  readonly columns: readonly { readonly name: string; readonly read: ColumnReader }[];
  readonly changesSchema: boolean;
  /** Whether the statement may write, even if it returns rows. */
  readonly isWrite: boolean;
}

/** One connection of node:sqlite with a statement cache and exact values in both directions (EM-4). */
export class SqliteConnection {
  /** Name of the database in error messages. */
  readonly label: string;
  /** Must be invalidated when a write is rolled back. */
  readonly cacheGeneration = new CacheGeneration();
  readonly #database: DatabaseSync;
  readonly #prepared = new Map<string, PreparedQuery>();
  readonly #file: string;
  #writes = 0;
  #version: unknown;
  /** File descriptor of the write-ahead log, opened at the first sync. */
  #log: number | undefined;
  #failure: UnavailableError | undefined;

  private constructor(file: string, label: string, database: DatabaseSync) {
    this.#file = file;
    this.label = label;
    this.#database = database;
  }

  /**
   * Opens `file` for reading and writing; creates it with its directory if needed. Uses WAL with synchronous NORMAL: a
   * commit survives a crash of the process once it returns, and a power failure after {@link sync}. While another
   * process writes, blocks the thread for up to `busyTimeoutMs`.
   * @throws UnavailableError STORE_WAL_UNSUPPORTED, STORE_DISK_FAILED, STORE_BUSY; DataLossError STORE_CORRUPT; the
   *   error of mkdirSync if the directory cannot be created
   */
  static openWriter(file: string, label: string, busyTimeoutMs = 1_000): SqliteConnection {
    return SqliteConnection.#translating(label, () => {
      if (file !== MEMORY) createPrivate(file);
      const database = new DatabaseSync(file, { timeout: busyTimeoutMs });
      try {
        database.exec('PRAGMA foreign_keys = ON');
        if (file !== MEMORY) makeDurable(database, file);
        return new SqliteConnection(file, label, database);
      } catch (error) {
        database.close();
        throw error;
      }
    });
  }

  /** Opens an existing `file` for reading committed data. */
  static openReader(file: string, label: string): SqliteConnection {
    return SqliteConnection.#translating(label, () => {
      const database = new DatabaseSync(file, { timeout: READ_TIMEOUT_MS, readOnly: true });
      return new SqliteConnection(file, label, database);
    });
  }

  /** Whether a transaction is open. */
  get inTransaction(): boolean {
    return this.#database.isTransaction;
  }

  /** Number of statements that wrote or may have written, including rolled back ones. */
  get writes(): number {
    return this.#writes;
  }

  /**
   * Makes all commits durable in a thread pool thread; synchronous FULL would do so in COMMIT on this thread (CO-1).
   * After a failure the content of the disk is unknown, so all reads and writes fail until the file is opened again.
   * @throws UnavailableError STORE_DISK_FAILED
   */
  async sync(): Promise<void> {
    if (this.#file === MEMORY) return;
    try {
      this.#log ??= openSync(`${this.#file}-wal`, 'r+');
      await syncFile(this.#log);
    } catch (cause) {
      const sentence = `The disk of ${this.label} failed; restart the service.`;
      this.#failure = new UnavailableError('STORE_DISK_FAILED', sentence, {}, { cause });
      throw this.#failure;
    }
  }

  /** Throws UnavailableError STORE_DISK_FAILED after a failed {@link sync}. */
  assertUsable(): void {
    if (this.#failure !== undefined) throw this.#failure;
  }

  /** Runs one statement and returns its rows or the number of changed rows. */
  query<R>(sql: string, parameters: readonly unknown[]): QueryResult<R> {
    this.assertUsable();
    try {
      return this.#execute<R>(this.#prepare(sql), parameters);
    } catch (error) {
      throw translateSqliteError(error, this.label);
    }
  }

  #execute<R>(prepared: PreparedQuery, parameters: readonly unknown[]): QueryResult<R> {
    const { statement, columns, isWrite } = prepared;
    const bound = parameters.map(toBound);
    if (columns.length === 0) {
      const { changes, lastInsertRowid } = statement.run(...bound);
      if (isWrite && changes > 0) this.#writes += 1;
      // The columns of a cached `select *` may have changed with the schema.
      if (prepared.changesSchema) this.#prepared.clear();
      return { rows: [], numAffectedRows: BigInt(changes), insertId: BigInt(lastInsertRowid) };
    }
    const rows = statement.all(...bound) as unknown as SQLOutputValue[][];
    if (isWrite) this.#writes += 1;
    return { rows: rows.map((values) => toRow(columns, values)) as R[] };
  }

  /** Runs one statement without parameters and result, such as COMMIT. */
  run(sql: string): void {
    this.query(sql, []);
  }

  /** Invalidates cached rows if another connection has written; called at the beginning of a transaction. */
  detectOtherWriters(): void {
    const [row] = this.query<{ readonly data_version: number }>('PRAGMA data_version', []).rows;
    if (row?.data_version === this.#version) return;
    this.#version = row?.data_version;
    this.cacheGeneration.invalidate();
  }

  close(): void {
    this.#prepared.clear();
    this.#database.close();
    if (this.#log !== undefined) closeSync(this.#log);
  }

  #prepare(sql: string): PreparedQuery {
    const known = this.#prepared.get(sql);
    if (known !== undefined) return known;
    const statement = this.#database.prepare(sql);
    statement.setReadBigInts(true);
    statement.setReturnArrays(true);
    const columns = statement
      .columns()
      .map((column) => ({ name: column.name, read: readerFor(column.type) }));
    const prepared = {
      statement,
      columns,
      changesSchema: SCHEMA_CHANGE.test(sql),
      isWrite: WRITE.test(sql),
    };
    this.#prepared.set(sql, prepared);
    for (const oldest of this.#prepared.keys()) {
      if (this.#prepared.size <= STATEMENT_CACHE_SIZE) break;
      this.#prepared.delete(oldest);
    }
    return prepared;
  }

  static #translating<T>(label: string, work: () => T): T {
    try {
      return work();
    } catch (error) {
      throw translateSqliteError(error, label);
    }
  }
}

function syncFile(file: number): Promise<void> {
  return new Promise((resolve, reject) => {
    fdatasync(file, (error) => (error === null ? resolve() : reject(error)));
  });
}

/**
 * Creates the file and its folder with access for the owner only, whatever the umask. The files of the write-ahead log
 * get the permissions of the database (https://sqlite.org/wal.html).
 */
function createPrivate(file: string): void {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  try {
    closeSync(openSync(file, 'ax', 0o600));
  } catch {
    // The file already exists, or SQLite reports the error when it opens the file.
  }
}

function makeDurable(database: DatabaseSync, file: string): void {
  const mode = database.prepare('PRAGMA journal_mode = WAL').get()?.journal_mode;
  if (mode !== 'wal') {
    throw new UnavailableError(
      'STORE_WAL_UNSUPPORTED',
      `The file system of ${file} does not support a write-ahead log; use a local directory.`,
    );
  }
  database.exec('PRAGMA synchronous = NORMAL; PRAGMA journal_size_limit = 67108864');
  database.exec(`PRAGMA wal_autocheckpoint = ${CHECKPOINT_PAGES}`);
}

function toRow(columns: PreparedQuery['columns'], values: readonly SQLOutputValue[]): object {
  const row: Record<string, unknown> = {};
  let index = 0;
  for (const { name, read } of columns) {
    row[name] = read(values[index] ?? null);
    index += 1;
  }
  return row;
}
