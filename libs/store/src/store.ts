import type { RunKey } from '@writ/kernel';
import type { Kysely, Transaction } from 'kysely';

/** The supported databases. */
export type StoreDialect = 'sqlite' | 'postgres';

/** Location of the marker file in which a service records the latest mark of its database (BD-4). */
export interface MarkerLocation {
  readonly file: string;
  /** Interval at which a service that uses the database raises and records its mark, ms. */
  readonly everyMs: number;
}

/** The database of a service. `:memory:` lasts until the store is closed. */
export type StoreLocation =
  | {
      readonly dialect: 'sqlite';
      readonly file: string;
      /** Location of the marker file; default: the mark is not recorded in a file. */
      readonly marker?: MarkerLocation;
    }
  | {
      readonly dialect: 'postgres';
      readonly marker?: MarkerLocation;
      readonly url: string;
      readonly schema: string;
      /** Limits of the sessions of the service; omitted limits have defaults. */
      readonly limits?: Partial<PostgresLimits>;
      /**
       * Whether all transactions are serialized, including transactions that name their runs, tenant or resource.
       * Default false.
       */
      readonly oneAtATime?: boolean;
    };

/** Limits of the sessions of one process on PostgreSQL. Milliseconds. */
export interface PostgresLimits {
  /** Time limit of a transaction and of a statement; default 5 000. */
  readonly statementTimeoutMs: number;
  /** Maximum wait for a lock that another transaction holds; default 8 000. */
  readonly lockTimeoutMs: number;
  /**
   * Idle time in a transaction after which the server ends the session; default: `statementTimeoutMs` plus one second.
   */
  readonly idleTimeoutMs: number;
  /** Time limit for opening a session; default 5 000. */
  readonly connectTimeoutMs: number;
  /**
   * Sessions for reads outside of transactions; default 4. Four further sessions check the health of the database, read
   * for halts, signal liveness, and hold the leadership of the outbox relay.
   */
  readonly poolSize: number;
  /**
   * Maximum number of sessions that write; default 4. More than one session is opened only for transactions that name
   * different runs, tenants or resources.
   */
  readonly writers: number;
}

/** A transaction of a {@link Store}. */
export type StoreTransaction<DB> = Transaction<DB>;

/**
 * The usual value of {@link TransactionOptions.commitDelayMs}, ms. Most runs commit to each of their databases more
 * often than this, so a delayed transaction rarely needs a separate commit.
 */
export const COMMIT_DELAY_MS = 250;

/** Options of a transaction. */
export interface TransactionOptions {
  /**
   * The only run whose rows the transaction reads or writes. On PostgreSQL, transactions of different runs overlap.
   * Transactions of the same run are serialized, and a transaction without `run`, `runs`, `tenant` and `resource`
   * overlaps no other transaction. Rows that belong to no run must not be written, and may be read only if all
   * transactions that write them have none of these options.
   */
  readonly run?: RunKey | undefined;
  /** Like `run`, for a transaction that reads or writes rows of several runs. */
  readonly runs?: readonly RunKey[] | undefined;
  /** Like `run`, for a transaction that reads or writes rows of several runs of one tenant, and of no other tenant. */
  readonly tenant?: string | undefined;
  /**
   * Name of a group of rows that belong to no run, such as the rows of a background loop or of one slice of a tenant;
   * can be combined with `run`. Transactions with the same resource do not overlap. Only transactions with this
   * resource, or without any of these options, may write these rows. If every transaction with the resource names a run
   * of one tenant, transactions with this `tenant` may write them too.
   */
  readonly resource?: string | undefined;
  /**
   * Runs before waiting transactions that are not urgent, and is accepted even if the queue is full, so that a halt
   * does not wait for a flood of requests (BD-2).
   */
  readonly urgent?: boolean;
  /**
   * Marks a transaction that no request waits for (relay, chainer, pruning). Background commits are counted separately.
   */
  readonly background?: boolean;
  /**
   * Commits without waiting for fsync: until the next durable commit, a power failure may lose the transaction; a crash
   * of the process does not. For writes that can be repeated and that no response depends on; background transactions
   * only. Ignored by databases that do not support relaxed durability.
   */
  readonly relaxedDurability?: boolean;
  /**
   * Longest wait for another transaction with which to share the commit, ms, usually {@link COMMIT_DELAY_MS}; default
   * 0. The transaction runs together with the other one, in the order of arrival, or alone after this time. For
   * transactions that no response waits for (CO-1). Ignored by databases that replicas share.
   */
  readonly commitDelayMs?: number;
}

/**
 * The store of a service. The declared type of a column determines its JavaScript type, the same on every dialect:
 * `bigint` bigint, `integer` number, `boolean` boolean, `timestamptz` Date, `bytea` Uint8Array, `text` string, `real`
 * number. Computed integers (`sum`, `max`, `coalesce`) have no declared type; convert them with `int64()` (EM-4). Times
 * come from the service's clock, never from SQL.
 */
export interface Store<DB> {
  readonly dialect: StoreDialect;

  /**
   * Reads committed data outside of transactions. Rejects writes and `db.transaction()` (InternalError
   * STORE_READ_ONLY), streaming, and any use inside of a transaction of this store (InternalError
   * STORE_NESTED_TRANSACTION). On PostgreSQL reads that find all sessions busy run in order of arrival, and are
   * rejected when too many of them wait (OverloadedError STORE_QUEUE_FULL).
   */
  readonly db: Kysely<DB>;
  /**
   * Like `db`, for the reads of halts: on PostgreSQL they use a separate session, so that they neither wait for other
   * reads nor are rejected because of them (BD-2).
   */
  readonly urgentDb: Kysely<DB>;

  /**
   * Runs `work` in a transaction and resolves with its result once it is durable. If `work` throws, the transaction is
   * rolled back and the error passes through. Transactions run one after the other in order of arrival, urgent ones
   * first. On PostgreSQL, transactions that name different runs, tenants or resources overlap. Waiting transactions may
   * share a commit; each still fails alone. The store does not retry. `work` must only make database calls, because
   * other transactions wait for it.
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
   * Resolves when the database answers and accepts writes. If no session for writes is open and the last attempt to
   * open one failed, runs an empty transaction; otherwise takes no lock. An unresponsive server is reported after the
   * timeouts of its sessions. A SQLite store is available until a disk failure.
   * @throws UnavailableError STORE_UNREACHABLE, STORE_BUSY, STORE_DISK_FAILED, STORE_CLOSED; OverloadedError
   *   STORE_QUEUE_FULL
   */
  checkAvailable(): Promise<void>;

  /**
   * Number of durable commits with writes since the store was opened, excluding commits that contained only background
   * work.
   */
  readonly commits: number;

  /**
   * Number of commits with writes since the store was opened that contained only background work, including commits
   * with relaxed durability.
   */
  readonly backgroundCommits: number;

  /** Rejects new transactions, waits for accepted ones and closes. Idempotent. */
  close(): Promise<void>;
}
