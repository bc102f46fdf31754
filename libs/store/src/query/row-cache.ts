import { ByteCache } from '@writ/kernel';
import type { Kysely } from 'kysely';
import { type CacheGeneration, cacheGenerationOf } from './transaction-state.ts';

/** A store's `db` or a transaction. */
type AnyDatabase = Pick<Kysely<unknown>, 'isTransaction'>;

/** Limits of the cached rows of one kind. Nearly every statement looks one up, so a lookup must not change the order. */
const LIMITS = {
  name: 'rows',
  maxEntries: 10_000,
  maxBytes: 32 * 1024 * 1024,
  maxEntryBytes: 4 * 1024 * 1024,
  evicts: 'oldest',
} as const;

interface CachedRows<V> {
  generation: number;
  readonly rows: ByteCache<V>;
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

  #rows(db: object): ByteCache<V> | undefined {
    const generation = cacheGenerationOf(db);
    if (generation === undefined) return undefined;
    const cached = this.#cached.get(generation) ?? this.#create(generation);
    if (cached.generation !== generation.current) {
      cached.rows.clear();
      cached.generation = generation.current;
    }
    return cached.rows;
  }

  #create(generation: CacheGeneration): CachedRows<V> {
    const cached = { generation: generation.current, rows: new ByteCache<V>(LIMITS) };
    this.#cached.set(generation, cached);
    return cached;
  }
}
