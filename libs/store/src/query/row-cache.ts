import type { Kysely } from 'kysely';

/** A store's `db` or a transaction. */
type AnyDatabase = Pick<Kysely<unknown>, 'isTransaction'>;

/** Rows of one kind that are kept at most; one more, and all of them are read anew. */
const MAX_ROWS = 10_000;

/**
 * What the one writer of a database knows to be there without reading it. Everything is forgotten
 * when it may be true no more: when another process wrote, and when a write was undone.
 */
export class StoreMemory {
  #generation = 0;

  /** Rises whenever everything is forgotten. */
  get generation(): number {
    return this.#generation;
  }

  forget(): void {
    this.#generation += 1;
  }
}

/** The memory that a transaction may use, for as long as it is open. */
interface Loan {
  readonly memory: StoreMemory;
  readonly isOpen: () => boolean;
}

const loans = new WeakMap<object, Loan>();

/** Lets `trx` use the memory of its store while it `isOpen`. */
export function lendMemory(trx: object, memory: StoreMemory, isOpen: () => boolean): void {
  loans.set(trx, { memory, isOpen });
}

interface Known<V> {
  readonly generation: number;
  readonly rows: Map<string, V>;
}

/**
 * Rows of one kind that nearly every request reads, remembered from one transaction to the next on
 * SQLite, where all of them go through one writer that is told of others. Whoever writes such a row
 * must remember it as it stands then, or forget it, right after the statement. Values are never changed.
 * Outside of transactions, and on PostgreSQL, nothing is known.
 */
export class RowCache<V> {
  readonly #known = new WeakMap<StoreMemory, Known<V>>();

  /** The row as it stands in this transaction; undefined when it has to be read. */
  get(db: AnyDatabase, key: string): V | undefined {
    return this.#rows(db)?.get(key);
  }

  /** Keeps a row that this transaction has just read or written. */
  set(db: AnyDatabase, key: string, row: V): void {
    const rows = this.#rows(db);
    if (rows === undefined) return;
    if (rows.size >= MAX_ROWS) rows.clear();
    rows.set(key, row);
  }

  /** Drops a row that this transaction has just written without knowing how it stands now. */
  delete(db: AnyDatabase, key: string): void {
    this.#rows(db)?.delete(key);
  }

  /** Drops all rows of the kind, when this transaction has written to some and cannot tell which. */
  clear(db: AnyDatabase): void {
    this.#rows(db)?.clear();
  }

  /** Whether rows are kept for this transaction: on SQLite, while it is open. */
  keeps(db: AnyDatabase): boolean {
    return this.#rows(db) !== undefined;
  }

  #rows(db: object): Map<string, V> | undefined {
    const loan = loans.get(db);
    // A work that was undone may still be running; what it has read was perhaps its own.
    if (loan === undefined || !loan.isOpen()) return undefined;
    const { memory } = loan;
    const known = this.#known.get(memory);
    if (known?.generation === memory.generation) return known.rows;
    const rows = new Map<string, V>();
    this.#known.set(memory, { generation: memory.generation, rows });
    return rows;
  }
}
