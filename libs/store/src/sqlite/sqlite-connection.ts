import { mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import { DatabaseSync, type SQLOutputValue, type StatementSync } from 'node:sqlite';
import { UnavailableError } from '@writ/kernel';
import type { QueryResult } from 'kysely';
import { StoreMemory } from '../query/row-cache.ts';
import { translateSqliteError } from './sqlite-errors.ts';
import { type ColumnReader, readerFor, toBound } from './sqlite-values.ts';

/** The name of a database that lives only in this process. */
export const MEMORY = ':memory:';

const STATEMENT_CACHE_SIZE = 500;
// Readers wait only while a write-ahead log is recovered.
const READ_TIMEOUT_MS = 1_000;
const WRITE = /^\s*(with\b.*\b)?(insert|update|delete|replace)\b/is;
const SCHEMA_CHANGE = /^\s*(create|alter|drop)\b/i;

interface PreparedQuery {
  readonly statement: StatementSync;
  readonly columns: readonly { readonly name: string; readonly read: ColumnReader }[];
  readonly changesSchema: boolean;
  /** Whether it may change rows, also when it returns some. */
  readonly isWrite: boolean;
}

/** One connection of node:sqlite: prepared statements are kept, values are exact both ways (EM-4). */
export class SqliteConnection {
  /** What messages call the database: its path. */
  readonly label: string;
  /** What is known of its rows; whoever undoes a write must make it forget. */
  readonly memory = new StoreMemory();
  readonly #database: DatabaseSync;
  readonly #prepared = new Map<string, PreparedQuery>();
  #writes = 0;
  #waits = true;
  #version: unknown;

  private constructor(label: string, database: DatabaseSync) {
    this.label = label;
    this.#database = database;
  }

  /**
   * Opens `file` for reading and writing, and makes it with its folder when it is not there. Commits
   * are durable when they return: WAL with synchronous FULL. Another process that writes is waited
   * for `busyTimeoutMs` milliseconds, on the thread that serves every request.
   * @throws UnavailableError STORE_WAL_UNSUPPORTED, STORE_DISK_FAILED; DataLossError STORE_CORRUPT
   */
  static openWriter(file: string, label: string, busyTimeoutMs = 1_000): SqliteConnection {
    return SqliteConnection.#translating(label, () => {
      if (file !== MEMORY) mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
      const database = new DatabaseSync(file, { timeout: busyTimeoutMs });
      try {
        database.exec('PRAGMA foreign_keys = ON');
        if (file !== MEMORY) makeDurable(database, file);
        return new SqliteConnection(label, database);
      } catch (error) {
        database.close();
        throw error;
      }
    });
  }

  /** Opens an existing `file` for reading only: sees what is committed, and only that. */
  static openReader(file: string, label: string): SqliteConnection {
    return SqliteConnection.#translating(label, () => {
      const database = new DatabaseSync(file, { timeout: READ_TIMEOUT_MS, readOnly: true });
      return new SqliteConnection(label, database);
    });
  }

  /** Whether a transaction is open, whoever opened or ended it. */
  get inTransaction(): boolean {
    return this.#database.isTransaction;
  }

  /** Statements so far that changed rows, or may have; undone ones included. */
  get writes(): number {
    return this.#writes;
  }

  /**
   * Whether commits from now on wait until the disk has them and all those before, or survive only
   * the death of the process; for outside of transactions.
   */
  waitForDisk(waits: boolean): void {
    if (waits === this.#waits) return;
    this.run(`PRAGMA synchronous = ${waits ? 'FULL' : 'NORMAL'}`);
    this.#waits = waits;
  }

  /** Runs one statement and returns its rows, or how many rows it changed. */
  query<R>(sql: string, parameters: readonly unknown[]): QueryResult<R> {
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
      // What a cached `select *` returns may have changed with the schema.
      if (prepared.changesSchema) this.#prepared.clear();
      return { rows: [], numAffectedRows: BigInt(changes), insertId: BigInt(lastInsertRowid) };
    }
    const rows = statement.all(...bound) as unknown as SQLOutputValue[][];
    if (isWrite) this.#writes += 1;
    return { rows: rows.map((values) => toRow(columns, values)) as R[] };
  }

  /** Runs one statement that takes nothing and returns nothing, such as COMMIT. */
  run(sql: string): void {
    this.query(sql, []);
  }

  /** Forgets what is known when another connection has written; to be called as a transaction begins. */
  noticeOthers(): void {
    const [row] = this.query<{ readonly data_version: number }>('PRAGMA data_version', []).rows;
    if (row?.data_version === this.#version) return;
    this.#version = row?.data_version;
    this.memory.forget();
  }

  close(): void {
    this.#prepared.clear();
    this.#database.close();
  }

  #prepare(sql: string): PreparedQuery {
    const known = this.#prepared.get(sql);
    if (known !== undefined) {
      this.#prepared.delete(sql);
      this.#prepared.set(sql, known);
      return known;
    }
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

function makeDurable(database: DatabaseSync, file: string): void {
  const mode = database.prepare('PRAGMA journal_mode = WAL').get()?.journal_mode;
  if (mode !== 'wal') {
    throw new UnavailableError(
      'STORE_WAL_UNSUPPORTED',
      `The file system under ${file} cannot hold a write-ahead log; choose a local folder.`,
    );
  }
  database.exec('PRAGMA synchronous = FULL; PRAGMA journal_size_limit = 67108864');
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
