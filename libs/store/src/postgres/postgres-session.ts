import { Socket } from 'node:net';
import { PreconditionError } from '@writ/kernel';
import type { QueryResult } from 'kysely';
import pg from 'pg';
import {
  endsConnection,
  translateBeginError,
  translatePostgresError,
  translateSessionError,
} from './postgres-errors.ts';
import { fieldReader, type SentValue, toSent } from './postgres-values.ts';

/** Number of steps into which `afterLoopTime` divides a timeout; the event loop must run between two steps. */
const LOOP_STEPS = 20;

/** The database and the limits of a session. Milliseconds. */
export interface SessionSettings {
  readonly url: string;
  readonly schema: string;
  /** Name of the database in error messages; not its URL, which contains a password. */
  readonly label: string;
  /** Name of the session in the server's views. */
  readonly applicationName: string;
  readonly statementTimeoutMs: number;
  readonly lockTimeoutMs: number;
  readonly connectTimeoutMs: number;
}

const OLDEST_SERVER = 140_000;
/**
 * Query for the server version and an identifier of the server incarnation. The identifier consists of the start time
 * of the server and the reset time of its statistics, which the server resets after a crash.
 */
const SERVER_INFO = `select concat_ws(' ', current_setting('server_version_num'), concat(
  extract(epoch from pg_postmaster_start_time()), '/',
  (select extract(epoch from stats_reset) from pg_stat_bgwriter)))`;
const KEEP_ALIVE_MS = 10_000;
// Time that the client waits for a response beyond the timeouts of the server, so that a reachable server reports a
// timeout itself.
const ANSWER_GRACE_MS = 5_000;
const MAX_PREPARED = 500;
const WRITES: ReadonlySet<string> = new Set(['INSERT', 'UPDATE', 'DELETE', 'MERGE']);

/** A query with its own time limit for the response, which the types of pg do not declare. */
type TimedQuery = pg.QueryArrayConfig & { readonly query_timeout: number };

/** The result of a statement, and whether it changed rows. */
export interface SessionResult<R> extends QueryResult<R> {
  readonly command: string;
  readonly wrote: boolean;
}

/**
 * A connection to PostgreSQL. It sends and reads values without loss of precision (EM-4), and prepares statements that
 * are used repeatedly.
 */
export class PostgresSession {
  readonly label: string;
  readonly statementTimeoutMs: number;
  /** Longest wait for the response to a statement that is sent alone, ms. */
  readonly #answerTimeoutMs: number;
  /** Host and port, for the log. */
  readonly #server: string;
  readonly #client: pg.Client;
  readonly #socket: Socket;
  #isCorked = false;
  /** Names of prepared statements by SQL; a statement is prepared and named at its second use. */
  readonly #names = new Map<string, string | undefined>();
  #broken = false;
  #serverIncarnation = '';
  #inFlight = 0;
  #prepared = 0;

  private constructor(settings: SessionSettings, client: pg.Client, socket: Socket) {
    this.label = settings.label;
    this.#socket = socket;
    this.#server = `${client.host}:${client.port}`;
    this.statementTimeoutMs = settings.statementTimeoutMs;
    this.#answerTimeoutMs = answerTimeout(settings);
    this.#client = client;
    const markBroken = () => {
      this.#broken = true;
    };
    client.on('error', markBroken);
    client.on('end', markBroken);
  }

  /**
   * Opens a session of an open store; `setup` contains additional SQL statements to run at its start.
   * @throws UnavailableError STORE_BUSY; STORE_UNREACHABLE, also if the server rejects the session, for example after a
   *   change of the password; OverloadedError STORE_DISK_FULL; DataLossError STORE_CORRUPT
   */
  static async open(settings: SessionSettings, setup: string): Promise<PostgresSession> {
    return await PostgresSession.#connect(settings, setup, translateSessionError);
  }

  /**
   * Like `open`, for a store that is being opened: an error that the operator must correct is reported unchanged.
   * @throws UnavailableError STORE_UNREACHABLE; PreconditionError STORE_POSTGRES_TOO_OLD; the other errors of
   *   `translatePostgresError`, which leaves an error such as a wrong password unchanged
   */
  static async openAtStart(settings: SessionSettings, setup: string): Promise<PostgresSession> {
    return await PostgresSession.#connect(settings, setup, translatePostgresError);
  }

  static async #connect(
    settings: SessionSettings,
    setup: string,
    translate: typeof translatePostgresError,
  ): Promise<PostgresSession> {
    const { url, label, applicationName, connectTimeoutMs } = settings;
    const socket = new Socket();
    const client = new pg.Client({
      connectionString: url,
      application_name: applicationName,
      stream: () => socket,
      query_timeout: answerTimeout(settings),
      keepAlive: true,
      keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
      // With pipelining, savepoints need no separate round trip, and a transaction can send a query before the response
      // to the previous one arrives.
      pipeline: true,
      types: { getTypeParser: () => (text: string) => text },
    });
    const session = new PostgresSession(settings, client, socket);
    // Replaces the connect timeout of pg, which also counts time in which the event loop was blocked and could not read
    // the response.
    const cancel = afterLoopTime(connectTimeoutMs, () =>
      socket.destroy(new Error('timeout expired')),
    );
    try {
      await client.connect().finally(cancel);
      await client.query(`${sessionSettings(settings)}; ${setup}`);
      await session.#checkServer();
      return session;
    } catch (error) {
      await session.close();
      throw translate(error, label, session.#server);
    }
  }

  /**
   * Returns the identifier of the server incarnation. The identifier changes at every start and every crash, including
   * the crash of a backend process, after which the server ends all sessions but keeps its start time.
   */
  get serverIncarnation(): string {
    return this.#serverIncarnation;
  }

  /** Whether the session can run no more queries. */
  get broken(): boolean {
    return this.#broken;
  }

  /** Number of queries in flight. */
  get inFlight(): number {
    return this.#inFlight;
  }

  /**
   * Runs one statement after all previously sent statements.
   * @throws InternalError STORE_INVALID_PARAMETER
   */
  async query<R>(sql: string, parameters: readonly unknown[]): Promise<SessionResult<R>> {
    return await this.queryEncoded<R>(sql, parameters.map(toSent));
  }

  /** Like `query`, with encoded parameters. */
  async queryEncoded<R>(sql: string, values: SentValue[]): Promise<SessionResult<R>> {
    const name = this.#nameFor(sql);
    const query: TimedQuery = {
      text: sql,
      values,
      rowMode: 'array',
      // The server executes the statement after those in flight, each of which may last as long as its timeout.
      query_timeout: this.#answerTimeoutMs + this.#inFlight * this.statementTimeoutMs,
      ...(name === undefined ? {} : { name }),
    };
    const { rows, fields, command, rowCount } = await this.#send(() =>
      this.#client.query<unknown[]>(query),
    );
    const isWrite = WRITES.has(command);
    const changed = isWrite ? (rowCount ?? 0) : 0;
    const result = { command, wrote: changed > 0, rows: toRows<R>(fields, rows as Text[][]) };
    return isWrite ? { ...result, numAffectedRows: BigInt(changed) } : result;
  }

  /**
   * Runs statements without parameters, such as COMMIT. Returns the command tag of the last statement and the last
   * column of its first row.
   */
  async run(sql: string): Promise<{ command: string; text: string }> {
    return await this.#run(sql, translatePostgresError);
  }

  /**
   * Like `run`, for the statements that begin a transaction.
   * @throws UnavailableError STORE_UNREACHABLE, also on a standby server; the other errors of `translatePostgresError`
   */
  async begin(sql: string): Promise<{ text: string }> {
    return await this.#run(sql, translateBeginError);
  }

  async #run(
    sql: string,
    translate: typeof translatePostgresError,
  ): Promise<{ command: string; text: string }> {
    const answer: pg.QueryResult | pg.QueryResult[] = await this.#send(
      () => this.#client.query(sql),
      translate,
    );
    const last = Array.isArray(answer) ? answer.at(-1) : answer;
    const value = Object.values((last?.rows[0] ?? {}) as Record<string, unknown>).at(-1);
    return { command: last?.command ?? '', text: String(value ?? '') };
  }

  /**
   * Calls `listener` with the payload of each notification on the channels of this session, including notifications
   * that the session has sent itself.
   */
  onNotification(listener: (payload: string) => void): void {
    this.#client.on('notification', ({ payload }) => listener(payload ?? ''));
  }

  /** Closes the session; the server rolls back uncommitted work. */
  async close(): Promise<void> {
    this.#broken = true;
    try {
      await this.#client.end();
    } catch {
      // The session is unusable in any case.
      this.#broken = true;
    }
  }

  async #send<T>(query: () => Promise<T>, translate = translatePostgresError): Promise<T> {
    this.#inFlight += 1;
    this.#sendTogether();
    try {
      return await query();
    } catch (error) {
      if (endsConnection(error) && !this.#broken) void this.close();
      throw translate(error, this.label, this.#server);
    } finally {
      this.#inFlight -= 1;
    }
  }

  /**
   * Sends the queries of one turn of the event loop, such as a savepoint and the query after it, with one write to the
   * socket.
   */
  #sendTogether(): void {
    if (this.#isCorked) return;
    this.#isCorked = true;
    this.#socket.cork();
    process.nextTick(() => {
      this.#isCorked = false;
      this.#socket.uncork();
    });
  }

  #nameFor(sql: string): string | undefined {
    const known = this.#names.has(sql);
    if (!known) {
      if (this.#names.size < MAX_PREPARED) this.#names.set(sql, undefined);
      return undefined;
    }
    let name = this.#names.get(sql);
    if (name === undefined) {
      this.#prepared += 1;
      name = `writ_${this.#prepared}`;
      this.#names.set(sql, name);
    }
    return name;
  }

  async #checkServer(): Promise<void> {
    const { text } = await this.run(SERVER_INFO);
    const [version = '', incarnation = ''] = text.split(' ', 2);
    this.#serverIncarnation = incarnation;
    if (Number(version) >= OLDEST_SERVER) return;
    throw new PreconditionError(
      'STORE_POSTGRES_TOO_OLD',
      `${this.label} is on PostgreSQL ${version}; ${OLDEST_SERVER} (14) or newer is required.`,
      { server_version: version },
    );
  }
}

type Text = string | null;

function toRows<R>(fields: readonly pg.FieldDef[], rows: readonly Text[][]): R[] {
  if (rows.length === 0) return [];
  const columns = fields.map((field) => ({ name: field.name, read: fieldReader(field) }));
  return rows.map((values) => {
    const row: Record<string, unknown> = {};
    for (const [index, { name, read }] of columns.entries()) {
      const text = values[index] ?? null;
      row[name] = text === null ? null : read(text);
    }
    return row as R;
  });
}

function answerTimeout({ statementTimeoutMs, lockTimeoutMs }: SessionSettings): number {
  return statementTimeoutMs + lockTimeoutMs + ANSWER_GRACE_MS;
}

function sessionSettings({ schema, statementTimeoutMs, lockTimeoutMs }: SessionSettings): string {
  return [
    `set search_path to ${pg.escapeIdentifier(schema)}`,
    // The timeout includes the lock timeout, because a statement may wait for locks. After a transaction has acquired
    // its locks, beginTransaction sets the timeout without the lock timeout.
    `set statement_timeout to ${statementTimeoutMs + lockTimeoutMs}`,
    `set lock_timeout to ${lockTimeoutMs}`,
    `set timezone to 'UTC'`,
    `set datestyle to 'ISO'`,
    `set bytea_output to 'hex'`,
    `set synchronous_commit to on`,
  ].join('; ');
}

/**
 * Calls `onTimeout` after `ms` milliseconds during which the event loop ran. A period in which the event loop was
 * blocked or the process was paused counts for at most one of {@link LOOP_STEPS} steps, because a response may have
 * arrived without being read. Returns a function that cancels the timer.
 */
function afterLoopTime(ms: number, onTimeout: () => void): () => void {
  const stepMs = Math.ceil(ms / LOOP_STEPS);
  let timer: NodeJS.Timeout;
  const wait = (leftMs: number): void => {
    timer = setTimeout(
      () => (leftMs <= stepMs ? onTimeout() : wait(leftMs - stepMs)),
      Math.min(stepMs, leftMs),
    ).unref();
  };
  wait(ms);
  return () => clearTimeout(timer);
}
