import type { RunKey } from '@writ/kernel';
import type { Kysely, Transaction } from 'kysely';

/** The supported databases. */
export type StoreDialect = 'sqlite' | 'postgres';

/** Where a service records, outside its database, how far the database has come (BD-4). */
export interface MarkerLocation {
  readonly file: string;
  /** How often a store in use is marked, ms. */
  readonly everyMs: number;
}

/** The database of a service. `:memory:` lasts until the store is closed. */
export type StoreLocation =
  | {
      readonly dialect: 'sqlite';
      readonly file: string;
      /** Where the service records how far the database has come; default: nowhere. */
      readonly marker?: MarkerLocation;
    }
  | {
      readonly dialect: 'postgres';
      readonly marker?: MarkerLocation;
      readonly url: string;
      readonly schema: string;
      /** Limits of its sessions; omitted ones have defaults. */
      readonly limits?: Partial<PostgresLimits>;
      /**
       * Whether transactions that name their runs, tenant or resource are serialized like the others. Default false.
       */
      readonly oneAtATime?: boolean;
    };

/** Limits of the sessions of one process on PostgreSQL. Milliseconds. */
export interface PostgresLimits {
  /** Time limit of a transaction and of a statement; default 5 000. */
  readonly statementTimeoutMs: number;
  /** Maximum wait for the write lock of other processes; default 8 000. */
  readonly lockTimeoutMs: number;
  /** Idle time in a transaction after which the server ends the session; default: one second above the statement's. */
  readonly idleTimeoutMs: number;
  /** Time limit for opening a session; default 5 000. */
  readonly connectTimeoutMs: number;
  /** Sessions for reads outside of transactions; default 4. Two more signal liveness and lead the relay. */
  readonly poolSize: number;
  /**
   * Sessions that write; default 4. More than one is opened only for transactions that name different runs, tenants or
   * resources.
   */
  readonly writers: number;
}

/** A transaction of a {@link Store}. */
export type StoreTransaction<DB> = Transaction<DB>;

/**
 * The usual {@link TransactionOptions.commitDelayMs}, ms. Most runs commit to each of their databases at shorter
 * intervals, so that a delayed transaction rarely needs a commit of its own.
 */
export const COMMIT_DELAY_MS = 250;

/** Options of a transaction. */
export interface TransactionOptions {
  /**
   * The only run whose rows the transaction reads or writes. On PostgreSQL, transactions of different runs overlap;
   * those of one run, and those without `run`, `runs`, `tenant` and `resource`, do not. Rows that belong to no run may only be
   * read, and only if every transaction that writes them has none of these options.
   */
  readonly run?: RunKey | undefined;
  /** Like `run`, for a transaction that reads or writes rows of several runs. */
  readonly runs?: readonly RunKey[] | undefined;
  /** Like `run`, for a transaction that reads or writes rows of several runs of one tenant, and of no other tenant. */
  readonly tenant?: string | undefined;
  /**
   * Name of rows that belong to no run, such as those of a background loop or of one slice of a tenant, alone or together
   * with `run`. Transactions of one resource do not overlap. Only transactions with this resource, or without any of
   * these options, write these rows; if every transaction with the resource names a run of one tenant, also those with
   * this `tenant`.
   */
  readonly resource?: string | undefined;
  /** Goes before waiting transactions that are not urgent: halts must not wait for a flood of requests (BD-2). */
  readonly urgent?: boolean;
  /** No request waits for it (relay, chainer, pruning); counted separately. */
  readonly background?: boolean;
  /**
   * Commit without waiting for fsync: a power failure may lose the transaction until the next durable commit, a
   * crash of the process does not. For repeatable writes that no response depends on; background only. Ignored
   * by databases without relaxed durability.
   */
  readonly relaxedDurability?: boolean;
  /**
   * Longest wait for another transaction that shares the commit, ms, usually {@link COMMIT_DELAY_MS}; default 0. The
   * work runs with that transaction, in the order of arrival, or alone after this time. For work that no response waits
   * for (CO-1). Ignored by databases that replicas share.
   */
  readonly commitDelayMs?: number;
}

/**
 * The store of a service. The declared type of a column determines what it reads as on every dialect: `bigint`
 * bigint, `integer` number, `boolean` boolean, `timestamptz` Date, `bytea` Uint8Array, `text` string, `real` number.
 * Computed integers (`sum`, `max`, `coalesce`) have no declared type; convert them with `int64()` (EM-4). Times come
 * from the service's clock, never from SQL.
 */
export interface Store<DB> {
  readonly dialect: StoreDialect;

  /**
   * Reads committed data outside of transactions. Rejects writes and `db.transaction()` (InternalError
   * STORE_READ_ONLY), streaming, and any use inside of a transaction of this store (InternalError
   * STORE_NESTED_TRANSACTION).
   */
  readonly db: Kysely<DB>;

  /**
   * Runs `work` in a transaction and resolves with its result once it is durable. If `work` throws, the transaction is
   * rolled back and the error passes through. Transactions run one after the other in order of arrival, urgent ones
   * first. On PostgreSQL, transactions that name different runs, tenants or resources overlap. Waiting ones may share a
   * commit, in which each still fails alone. Nothing is retried. `work` must only make database calls, because other
   * transactions wait for it.
   * @throws InternalError STORE_NESTED_TRANSACTION if called inside of a transaction of this store,
   *   STORE_TRANSACTION_LOST; DeadlineError STORE_TRANSACTION_TIMEOUT; UnavailableError STORE_BUSY,
   *   STORE_COMMIT_FAILED, STORE_COMMIT_UNKNOWN, STORE_UNREACHABLE, STORE_DISK_FAILED, STORE_CLOSED; ConflictError
   *   STORE_CONFLICT; OverloadedError STORE_QUEUE_FULL, STORE_DISK_FULL
   */
  transaction<T>(
    work: (trx: Transaction<DB>) => Promise<T>,
    options?: TransactionOptions,
  ): Promise<T>;

  /**
   * Resolves when the database answers and accepts writes. Takes no lock, unless the last attempt to open a session for
   * writes failed: then it runs an empty transaction. An unresponsive server is reported after the timeouts of its
   * sessions. A SQLite file is available until its disk has failed.
   * @throws UnavailableError STORE_UNREACHABLE, STORE_BUSY, STORE_DISK_FAILED, STORE_CLOSED; OverloadedError
   *   STORE_QUEUE_FULL
   */
  checkAvailable(): Promise<void>;

  /** Number of durable commits with writes since opening that a request waited for. */
  readonly commits: number;

  /** Number of durable commits with writes since opening that held only background work. */
  readonly backgroundCommits: number;

  /** Rejects new transactions, waits for accepted ones and closes. Idempotent. */
  close(): Promise<void>;
}
