import { ByteCache } from '@writ/kernel';
import type { Kysely } from 'kysely';
import {
  type CacheGeneration,
  cacheGenerationOf,
  TransactionValue,
  takesRoundTrips,
} from './transaction-state.ts';

/** A store's `db` or a transaction. */
type AnyDatabase = Pick<Kysely<unknown>, 'isTransaction'>;

/**
 * Limits of the cached rows of one kind. The oldest entry is evicted first (FIFO), not the least recently used one,
 * because reordering entries at every lookup would be too expensive.
 */
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

/** Options of {@link RowCache}. */
interface RowCacheOptions {
  /**
   * Whether the transaction that reads a row holds a lock that prevents other transactions from writing it, as for rows
   * of the run that the transaction declares. On PostgreSQL such rows are cached until the transaction ends.
   */
  readonly areLocked?: boolean;
}

/**
 * Caches rows of one kind that nearly every request reads. On SQLite rows are cached across transactions, because all
 * transactions use one writer, which detects writes of other processes. On PostgreSQL only locked rows are cached, and
 * only within one transaction. Outside of transactions nothing is cached. Code that writes a row of this kind must
 * `set` the new row or `delete` its key directly after the statement. Cached values must not be modified.
 */
export class RowCache<V> {
  readonly #cached = new WeakMap<CacheGeneration, CachedRows<V>>();
  readonly #areLocked: boolean;
  readonly #ofTransaction = new TransactionValue(() => new Map<string, V>());

  constructor({ areLocked = false }: RowCacheOptions = {}) {
    this.#areLocked = areLocked;
  }

  /** Returns the cached row as this transaction sees it; undefined if the row must be read from the database. */
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

  /** Removes the rows whose keys begin with `prefix`, such as the rows of a run that has ended. */
  deletePrefix(db: AnyDatabase, prefix: string): void {
    const rows = this.#rows(db);
    if (rows instanceof ByteCache) rows.deletePrefix(prefix);
    else for (const key of rows?.keys() ?? []) if (key.startsWith(prefix)) rows?.delete(key);
  }

  /** Removes all rows of this kind, for a transaction that does not know which rows it has changed. */
  clear(db: AnyDatabase): void {
    this.#rows(db)?.clear();
  }

  /**
   * Whether rows that this transaction caches are available to later transactions: true on SQLite while the transaction
   * is open.
   */
  keeps(db: AnyDatabase): boolean {
    return cacheGenerationOf(db) !== undefined;
  }

  #rows(db: object): ByteCache<V> | Map<string, V> | undefined {
    const generation = cacheGenerationOf(db);
    if (generation === undefined) {
      return this.#areLocked && takesRoundTrips(db) ? this.#ofTransaction.of(db) : undefined;
    }
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
