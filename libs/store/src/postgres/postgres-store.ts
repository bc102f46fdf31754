import { AsyncLocalStorage } from 'node:async_hooks';
import { setImmediate as nextEventLoopTurn } from 'node:timers/promises';
import { InternalError, omitUndefined, UnavailableError } from '@writ/kernel';
import { type CompiledQuery, Kysely, type QueryResult, type Transaction } from 'kysely';
import type { CommitObserver } from '../commit-observer.ts';
import { isDiskFull } from '../disk-full.ts';
import { markGuard } from '../marks/refuse-behind.ts';
import { runAfterCommit, runBeforeCommit } from '../query/transaction-state.ts';
import { enableLeadership } from '../replicas/leadership.ts';
import { migrate } from '../schema/migrations.ts';
import type { GroupCommitLimits } from '../sqlite/group-commit.ts';
import { readDriver } from '../sqlite/sqlite-dialect.ts';
import type { StoreLimits, StoreOptions } from '../sqlite/sqlite-store.ts';
import type { PostgresLimits, Store, StoreLocation, TransactionOptions } from '../store.ts';
import { withTransactionTimeout } from '../transaction-timeout.ts';
import { postgresDialect } from './postgres-dialect.ts';
import { PostgresGroupCommit } from './postgres-group-commit.ts';
import { PostgresReaders } from './postgres-readers.ts';
import { prepareSchema } from './postgres-schema.ts';
import { PostgresSession, type SessionSettings } from './postgres-session.ts';
import { PostgresTransactions } from './postgres-transactions.ts';
import { type WriteScope, writeScopes } from './write-locks.ts';

type PostgresLocation = Extract<StoreLocation, { readonly dialect: 'postgres' }>;

const DEFAULT_LIMITS: GroupCommitLimits = { maxQueued: 10_000, maxBatch: 64, maxBatchMs: 10 };
const DEFAULT_SESSION_LIMITS: Omit<PostgresLimits, 'idleTimeoutMs'> = {
  statementTimeoutMs: 5_000,
  lockTimeoutMs: 8_000,
  connectTimeoutMs: 5_000,
  poolSize: 4,
  writers: 4,
};
/**
 * The default idle timeout of a transaction is the statement timeout plus this time, ms. The server ends the session of
 * a process that is paused in a transaction after the idle timeout, so that its locks do not block other processes for
 * longer.
 */
const IDLE_GRACE_MS = 1_000;
/** Time limit of each statement of a migration, and of the wait for another migrating process. */
const MIGRATION_MS = 60_000;
const MIGRATION_IDLE = 'set idle_in_transaction_session_timeout to 30000';

/** Opens a schema of a PostgreSQL database, creates it if needed and migrates it. */
export async function openPostgresStore<DB>(
  location: PostgresLocation,
  { migrations, service, limits = {}, observer, marker }: StoreOptions,
): Promise<Store<DB>> {
  const all = { ...DEFAULT_LIMITS, ...limits };
  const sessionLimits = sessionLimitsOf(location, limits);
  const settings: SessionSettings = {
    url: location.url,
    schema: location.schema,
    label: `PostgreSQL schema ${location.schema}`,
    applicationName: `writ ${service}`,
    statementTimeoutMs: sessionLimits.statementTimeoutMs,
    lockTimeoutMs: sessionLimits.lockTimeoutMs,
    connectTimeoutMs: sessionLimits.connectTimeoutMs,
  };
  await prepareSchema(settings);
  // Longer timeouts, because another process may be migrating and a migration can take long. A separate group commit,
  // so that the commits of migrations are not counted.
  const migrationSettings = {
    ...settings,
    statementTimeoutMs: MIGRATION_MS,
    lockTimeoutMs: MIGRATION_MS,
  };
  const connect = () => PostgresSession.openAtStart(migrationSettings, MIGRATION_IDLE);
  const migrationWriter = new PostgresGroupCommit({
    label: settings.label,
    connect,
    limits: { ...all, writers: 1 },
    scopeOf: () => 'everything',
  });
  try {
    const { parent } = new PostgresTransactions<unknown>(migrationWriter, settings.schema);
    await migrate(parent, migrations, settings.label, markGuard(settings.label, marker));
  } finally {
    await migrationWriter.close();
  }
  const scopeOf = writeScopes(location.schema, location);
  return new PostgresStore<DB>(settings, sessionLimits, { limits: all, scopeOf, observer });
}

/**
 * Returns the session limits: limits of the store options override the limits of the location, which override the
 * defaults.
 */
function sessionLimitsOf(
  { limits }: PostgresLocation,
  { transactionTimeoutMs, busyTimeoutMs }: Partial<StoreLimits>,
): PostgresLimits {
  const chosen = {
    ...DEFAULT_SESSION_LIMITS,
    ...limits,
    ...omitUndefined({ statementTimeoutMs: transactionTimeoutMs, lockTimeoutMs: busyTimeoutMs }),
  };
  return { idleTimeoutMs: chosen.statementTimeoutMs + IDLE_GRACE_MS, ...chosen };
}

/** Settings for the transactions of a store. */
interface Writing {
  readonly limits: GroupCommitLimits;
  readonly scopeOf: (options: TransactionOptions) => WriteScope;
  readonly observer: CommitObserver | undefined;
}

class PostgresStore<DB> implements Store<DB> {
  readonly dialect = 'postgres';
  readonly db: Kysely<DB>;
  readonly urgentDb: Kysely<DB>;
  readonly #label: string;
  readonly #writer: PostgresGroupCommit;
  readonly #readers: PostgresReaders;
  /** Separate sessions, so that halts and the health check do not wait for other reads, nor for each other. */
  readonly #urgentReaders: PostgresReaders;
  readonly #health: PostgresReaders;
  readonly #transactions: PostgresTransactions<DB>;
  readonly #observer: CommitObserver | undefined;
  readonly #timeoutMs: number;
  readonly #scopes = new AsyncLocalStorage<{ active: boolean }>();
  #closing: Promise<void> | undefined;

  constructor(
    settings: SessionSettings,
    sessionLimits: PostgresLimits,
    { limits, scopeOf, observer }: Writing,
  ) {
    const { label, schema } = settings;
    this.#label = label;
    this.#observer = observer;
    this.#timeoutMs = sessionLimits.statementTimeoutMs;
    const forWriting = `set idle_in_transaction_session_timeout to ${sessionLimits.idleTimeoutMs}`;
    const forReading = `set default_transaction_read_only to on; set statement_timeout to ${sessionLimits.statementTimeoutMs}`;
    this.#writer = new PostgresGroupCommit({
      label,
      connect: () => PostgresSession.open(settings, forWriting),
      limits: { ...limits, writers: sessionLimits.writers },
      scopeOf,
      observer,
    });
    const reading = {
      label,
      connect: () => PostgresSession.open(settings, forReading),
      maxQueued: limits.maxQueued,
    };
    this.#readers = new PostgresReaders({ ...reading, sessions: sessionLimits.poolSize });
    this.#urgentReaders = new PostgresReaders({ ...reading, sessions: 1 });
    this.#health = new PostgresReaders({ ...reading, sessions: 1 });
    this.#transactions = new PostgresTransactions(this.#writer, schema);
    const open = (readers: PostgresReaders) => {
      const driver = readDriver((compiled) => this.#read(readers, compiled));
      return new Kysely<DB>({ dialect: postgresDialect(driver, schema) });
    };
    this.db = open(this.#readers);
    this.urgentDb = open(this.#urgentReaders);
    enableLeadership(this.db, settings);
  }

  async checkAvailable(): Promise<void> {
    this.#refuseClosed();
    const { rows } = await this.#health.borrow((session) =>
      session.query<{ standby: boolean }>('select pg_is_in_recovery() as standby', []),
    );
    if (rows[0]?.standby !== false) {
      const message = `${this.#label} is on a standby server, which accepts no writes.`;
      throw new UnavailableError('STORE_UNREACHABLE', message);
    }
    // If no session for writes is open and the last attempt to open one failed, runs an empty transaction, which opens
    // a session unless the server still refuses it, for example at its connection limit.
    if (!this.#writer.reachable) (await this.#writer.enter({ background: true })).leave();
  }

  get commits(): number {
    return this.#writer.commits;
  }

  get backgroundCommits(): number {
    return this.#writer.backgroundCommits;
  }

  async transaction<T>(
    work: (trx: Transaction<DB>) => Promise<T>,
    options: TransactionOptions = {},
  ): Promise<T> {
    this.#refuseInside('store.transaction');
    this.#refuseClosed();
    const turn = await this.#writer.enter(options);
    const scope = { active: true };
    try {
      const trx = this.#transactions.of(turn);
      const running = this.#scopes.run(scope, async () => {
        const worked = await work(trx);
        await runBeforeCommit(trx);
        return worked;
      });
      const result = await withTransactionTimeout(running, this.#timeoutMs, this.#label);
      // The callback has resolved. Code of the callback that is still running may use the store again.
      scope.active = false;
      await turn.finish();
      runAfterCommit(trx);
      return result;
    } catch (error) {
      if (isDiskFull(error)) this.#observer?.diskFull();
      throw error;
    } finally {
      scope.active = false;
      turn.leave();
    }
  }

  close(): Promise<void> {
    this.#refuseInside('store.close');
    this.#closing ??= this.#drainAndClose();
    return this.#closing;
  }

  async #drainAndClose(): Promise<void> {
    // Waits one turn of the event loop, so that calls made before `close` are queued and complete.
    await nextEventLoopTurn();
    await this.#writer.drained();
    const readers = [this.#readers, this.#urgentReaders, this.#health];
    await Promise.all([this.#writer.close(), ...readers.map((each) => each.close())]);
  }

  async #read(
    readers: PostgresReaders,
    { sql, parameters }: CompiledQuery,
  ): Promise<QueryResult<unknown>> {
    this.#refuseInside('store.db');
    this.#refuseClosed();
    return await readers.borrow((session) => session.query(sql, parameters));
  }

  #refuseInside(what: string): void {
    if (this.#scopes.getStore()?.active !== true) return;
    throw new InternalError(
      'STORE_NESTED_TRANSACTION',
      `${what} was used inside a transaction of ${this.#label}, which would deadlock; use the transaction that is passed to the callback.`,
    );
  }

  #refuseClosed(): void {
    if (this.#closing === undefined) return;
    throw new UnavailableError('STORE_CLOSED', `The connection to ${this.#label} is closed.`);
  }
}
