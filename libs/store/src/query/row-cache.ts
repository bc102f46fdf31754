import type { Kysely } from 'kysely';
import { type CacheGeneration, cacheGenerationOf } from './transaction-state.ts';

/** A store's `db` or a transaction. */
type AnyDatabase = Pick<Kysely<unknown>, 'isTransaction'>;

/** Maximum number of cached rows of one kind; the oldest are removed first. */
const MAX_ROWS = 10_000;
/** Estimated maximum size of the cached rows of one kind, in bytes; a row above a part of it is not cached. */
const MAX_BYTES = 32 * 1024 * 1024;
const MAX_ROW_BYTES = MAX_BYTES / 8;

interface CachedRow<V> {
  readonly row: V;
  readonly bytes: number;
}

/** The rows of one kind, oldest first. */
class Rows<V> {
  readonly #rows = new Map<string, CachedRow<V>>();
  #bytes = 0;

  get(key: string): V | undefined {
    return this.#rows.get(key)?.row;
  }

  set(key: string, row: V): void {
    this.delete(key);
    const bytes = sizeOf(row) + key.length;
    if (bytes > MAX_ROW_BYTES) return;
    this.#rows.set(key, { row, bytes });
    this.#bytes += bytes;
    for (const oldest of this.#rows.keys()) {
      if (this.#rows.size <= MAX_ROWS && this.#bytes <= MAX_BYTES) return;
      this.delete(oldest);
    }
  }

  delete(key: string): void {
    this.#bytes -= this.#rows.get(key)?.bytes ?? 0;
    this.#rows.delete(key);
  }

  deletePrefix(prefix: string): void {
    for (const key of this.#rows.keys()) if (key.startsWith(prefix)) this.delete(key);
  }

  clear(): void {
    this.#rows.clear();
    this.#bytes = 0;
  }
}

interface CachedRows<V> {
  readonly generation: number;
  readonly rows: Rows<V>;
}

/**
 * Caches rows of one kind that nearly every request reads, across transactions on SQLite, where all of them use one
 * writer that notices other processes. Code that writes such a row must `set` its new state or `delete` it right
 * after the statement. Values must not be modified. Outside of transactions and on PostgreSQL nothing is cached.
 */
export class RowCache<V> {
  readonly #cached = new WeakMap<CacheGeneration, CachedRows<V>>();

  /** The row as of this transaction; undefined if it must be read. */
  get(db: AnyDatabase, key: string): V | undefined {
    return this.#rows(db)?.get(key);
  }

  /** Caches a row that this transaction has just read or written. */
  set(db: AnyDatabase, key: string, row: V): void {
    this.#rows(db)?.set(key, row);
  }

  /** Removes a row that this transaction has changed to an unknown state. */
  delete(db: AnyDatabase, key: string): void {
    this.#rows(db)?.delete(key);
  }

  /** Removes the rows whose key begins with `prefix`, such as those of a run that ended. */
  deletePrefix(db: AnyDatabase, prefix: string): void {
    this.#rows(db)?.deletePrefix(prefix);
  }

  /** Removes all rows of the kind, when this transaction has changed unknown ones. */
  clear(db: AnyDatabase): void {
    this.#rows(db)?.clear();
  }

  /** Whether rows are cached for this transaction: on SQLite, while it is open. */
  keeps(db: AnyDatabase): boolean {
    return this.#rows(db) !== undefined;
  }

  #rows(db: object): Rows<V> | undefined {
    const generation = cacheGenerationOf(db);
    if (generation === undefined) return undefined;
    const cached = this.#cached.get(generation);
    if (cached?.generation === generation.current) return cached.rows;
    const rows = new Rows<V>();
    this.#cached.set(generation, { generation: generation.current, rows });
    return rows;
  }
}

/** Estimated size of a number, a date, or what belongs to each value. */
const SCALAR_BYTES = 16;
/** Estimated size of an entry of a map, which holds ids. */
const ENTRY_BYTES = 128;

/** Estimates the memory that a row takes, in bytes. Maps count by their number of entries. */
function sizeOf(value: unknown): number {
  if (typeof value === 'string') return SCALAR_BYTES + value.length;
  if (typeof value !== 'object' || value === null || value instanceof Date) return SCALAR_BYTES;
  if (value instanceof Uint8Array) return SCALAR_BYTES + value.byteLength;
  if (value instanceof Map || value instanceof Set) return SCALAR_BYTES + value.size * ENTRY_BYTES;
  let bytes = SCALAR_BYTES;
  for (const member of Object.values(value)) bytes += sizeOf(member);
  return bytes;
}
