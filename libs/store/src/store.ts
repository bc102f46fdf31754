import type { Kysely, Transaction } from 'kysely';

/** The databases that a store can stand on. */
export type StoreDialect = 'sqlite' | 'postgres';

/** Where a service keeps its state. `:memory:` lives only as long as the process. */
export type StoreLocation =
  | { readonly dialect: 'sqlite'; readonly file: string }
  | {
      readonly dialect: 'postgres';
      readonly url: string;
      readonly schema: string;
      /** What bounds its sessions there; whatever is not said has a default. */
      readonly bounds?: Partial<PostgresBounds>;
    };

/** What bounds the sessions of one process on PostgreSQL. Milliseconds. */
export interface PostgresBounds {
  /** That a transaction may take, and any statement; default 5 000. */
  readonly statementTimeoutMs: number;
  /** That a transaction waits for those of other processes; default 8 000. */
  readonly lockTimeoutMs: number;
  /** After which the server ends a process that is silent in a transaction; default: a second more than a statement. */
  readonly idleTimeoutMs: number;
  /** That opening a session may take; default 5 000. */
  readonly connectTimeoutMs: number;
  /** Sessions for reads outside of transactions; default 4. Three more write, are seen, and deliver events. */
  readonly poolSize: number;
}

/** What a transaction is for. */
export interface TransactionOptions {
  /** No request waits for it (relay, chainer, pruning), so it is counted apart. */
  readonly background?: boolean;
  /**
   * What it writes would be done again with the same result, and nobody is answered on the strength of
   * it: a loss of power may undo it, until the next commit that may not be undone. The death of a
   * process does not. In the background only; a database without such commits treats it as any other.
   */
  readonly relaxedDurability?: boolean;
}

/**
 * The state of one service. What a column is declared decides what it reads as, on every dialect:
 * `bigint` bigint, `integer` number, `boolean` boolean, `timestamptz` Date, `bytea` Uint8Array, `text`
 * and `double precision` as they are. Computed integers (`sum`, `max`, `coalesce`) have no declared
 * type and go through `int64()` (EM-4). Times are written by the service's clock, never by SQL.
 */
export interface Store<DB> {
  readonly dialect: StoreDialect;

  /**
   * Reads outside of transactions: what is committed, never what is under way. Refuses writes and
   * `db.transaction()` (InternalError STORE_READ_ONLY), streaming, and any use inside of a
   * transaction of this store (InternalError STORE_NESTED_TRANSACTION).
   */
  readonly db: Kysely<DB>;

  /**
   * Runs `work` in a transaction of its own and resolves with its result once that is durable. When
   * `work` throws, everything it did is undone and its error passes through. Transactions run one
   * after the other, first come, first served; those waiting together may share one commit, in which
   * each still fails alone. Nothing is retried. `work` makes database calls only: everybody else
   * waits for it.
   * @throws InternalError STORE_NESTED_TRANSACTION when called inside of a transaction of this store;
   *   DeadlineError STORE_TRANSACTION_TIMEOUT; UnavailableError STORE_BUSY, STORE_COMMIT_FAILED,
   *   STORE_DISK_FAILED, STORE_CLOSED; OverloadedError STORE_QUEUE_FULL
   */
  transaction<T>(
    work: (trx: Transaction<DB>) => Promise<T>,
    options?: TransactionOptions,
  ): Promise<T>;

  /** Durable commits since opening that changed something and that a request waited for. */
  readonly commits: number;

  /** Durable commits since opening that changed something and held only background work. */
  readonly backgroundCommits: number;

  /** Takes no new transaction, waits for those accepted, and closes; calling it again is harmless. */
  close(): Promise<void>;
}
