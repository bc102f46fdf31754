import type { Kysely } from 'kysely';

/** A store's `db` or a transaction. */
type AnyDatabase = Pick<Kysely<unknown>, 'isTransaction'>;

/** Maximum number of cached rows of one kind; when it is exceeded, the cache is cleared. */
const MAX_ROWS = 10_000;

/**
 * The validity of cached rows of one database. All become invalid when another process has written or when a
 * write was rolled back.
 */
export class CacheGeneration {
  #current = 0;

  /** Increases with every invalidation. */
  get current(): number {
    return this.#current;
  }

  invalidate(): void {
    this.#current += 1;
  }
}

/** The cache generation of a transaction while it is open. */
interface Scope {
  readonly generation: CacheGeneration;
  readonly isOpen: () => boolean;
}

const scopes = new WeakMap<object, Scope>();

/** Lets `trx` use cached rows while it `isOpen`. */
export function enableRowCache(
  trx: object,
  generation: CacheGeneration,
  isOpen: () => boolean,
): void {
  scopes.set(trx, { generation, isOpen });
}

interface CachedRows<V> {
  readonly generation: number;
  readonly rows: Map<string, V>;
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
    const rows = this.#rows(db);
    if (rows === undefined) return;
    if (rows.size >= MAX_ROWS) rows.clear();
    rows.set(key, row);
  }

  /** Removes a row that this transaction has changed to an unknown state. */
  delete(db: AnyDatabase, key: string): void {
    this.#rows(db)?.delete(key);
  }

  /** Removes all rows of the kind, when this transaction has changed unknown ones. */
  clear(db: AnyDatabase): void {
    this.#rows(db)?.clear();
  }

  /** Whether rows are cached for this transaction: on SQLite, while it is open. */
  keeps(db: AnyDatabase): boolean {
    return this.#rows(db) !== undefined;
  }

  #rows(db: object): Map<string, V> | undefined {
    const scope = scopes.get(db);
    // Rolled back work may still be running and may have read its own writes.
    if (scope === undefined || !scope.isOpen()) return undefined;
    const { generation } = scope;
    const cached = this.#cached.get(generation);
    if (cached?.generation === generation.current) return cached.rows;
    const rows = new Map<string, V>();
    this.#cached.set(generation, { generation: generation.current, rows });
    return rows;
  }
}
