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
 * Limits of the cached rows of one kind. Nearly every statement looks up a row, so lookups do not reorder the entries,
 * which would cost time.
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

/** The rows that a {@link RowCache} caches. */
interface RowCacheOptions {
  /**
   * Whether no other transaction writes such a row while one that reads it is open, as with the rows of a run that the
   * transaction declares: on PostgreSQL they are cached until it ends.
   */
  readonly areLocked?: boolean;
}

/**
 * Caches rows of one kind that nearly every request reads, across transactions on SQLite, where all of them use one
 * writer that notices other processes. Code that writes such a row must `set` its new state or `delete` it right
 * after the statement. Values must not be modified. Outside of transactions nothing is cached, and on PostgreSQL only
 * locked rows are, within one transaction.
 */
export class RowCache<V> {
  readonly #cached = new WeakMap<CacheGeneration, CachedRows<V>>();
  readonly #areLocked: boolean;
  readonly #ofTransaction = new TransactionValue(() => new Map<string, V>());

  constructor({ areLocked = false }: RowCacheOptions = {}) {
    this.#areLocked = areLocked;
  }

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
    const rows = this.#rows(db);
    if (rows instanceof ByteCache) rows.deletePrefix(prefix);
    else for (const key of rows?.keys() ?? []) if (key.startsWith(prefix)) rows?.delete(key);
  }

  /** Removes all rows of the kind, when this transaction has changed unknown ones. */
  clear(db: AnyDatabase): void {
    this.#rows(db)?.clear();
  }

  /** Whether the rows of this transaction are cached for later ones: on SQLite, while it is open. */
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
