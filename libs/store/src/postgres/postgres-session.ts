import { PreconditionError } from '@writ/kernel';
import type { QueryResult } from 'kysely';
import pg from 'pg';
import { endsConnection, translatePostgresError } from './postgres-errors.ts';
import { fieldReader, toSent } from './postgres-values.ts';

/** Which database, and what bounds a session in it. Milliseconds. */
export interface SessionSettings {
  readonly url: string;
  readonly schema: string;
  /** What messages call the database; never its url, which holds a password. */
  readonly label: string;
  /** What the server's own views call the session. */
  readonly applicationName: string;
  readonly statementTimeoutMs: number;
  readonly lockTimeoutMs: number;
  readonly connectTimeoutMs: number;
}

const OLDEST_SERVER = 140_000;
/** A crash resets the statistics of the server, and so the time since when it counts. */
const LOOK = `select concat_ws(' ', current_setting('server_version_num'), concat(
  extract(epoch from pg_postmaster_start_time()), '/',
  (select extract(epoch from stats_reset) from pg_stat_bgwriter)))`;
const KEEP_ALIVE_MS = 10_000;
// A server that is gone answers nothing, not even that a statement took too long.
const ANSWER_GRACE_MS = 5_000;
const PREPARED_AT_MOST = 500;
const WRITES: ReadonlySet<string> = new Set(['INSERT', 'UPDATE', 'DELETE', 'MERGE']);

/** A statement's answer, and whether it changed rows. */
export interface SessionResult<R> extends QueryResult<R> {
  readonly command: string;
  readonly wrote: boolean;
}

/** One connection to PostgreSQL: values are exact both ways (EM-4), frequent statements are kept prepared. */
export class PostgresSession {
  readonly label: string;
  readonly statementTimeoutMs: number;
  readonly #client: pg.Client;
  /** A statement's name from its second use on. */
  readonly #names = new Map<string, string | undefined>();
  #broken = false;
  #serverLife = '';
  #inFlight = 0;
  #prepared = 0;

  private constructor({ label, statementTimeoutMs }: SessionSettings, client: pg.Client) {
    this.label = label;
    this.statementTimeoutMs = statementTimeoutMs;
    this.#client = client;
    const breaks = () => {
      this.#broken = true;
    };
    client.on('error', breaks);
    client.on('end', breaks);
  }

  /**
   * Connects; `setup` are further statements for the session.
   * @throws UnavailableError STORE_UNREACHABLE; PreconditionError STORE_POSTGRES_TOO_OLD
   */
  static async open(settings: SessionSettings, setup: string): Promise<PostgresSession> {
    const { url, label, applicationName, statementTimeoutMs, lockTimeoutMs, connectTimeoutMs } =
      settings;
    const client = new pg.Client({
      connectionString: url,
      application_name: applicationName,
      connectionTimeoutMillis: connectTimeoutMs,
      query_timeout: statementTimeoutMs + lockTimeoutMs + ANSWER_GRACE_MS,
      keepAlive: true,
      keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
      // Savepoints need no round trip of their own, and a work may ask several things at once.
      pipeline: true,
      types: { getTypeParser: () => (text: string) => text },
    });
    const session = new PostgresSession(settings, client);
    try {
      await client.connect();
      await client.query(`${sessionSettings(settings)}; ${setup}`);
      await session.#look();
      return session;
    } catch (error) {
      await session.close();
      throw translatePostgresError(error, label);
    }
  }

  /**
   * Which life of which server it is in: another one after every start, and after every crash, of which
   * the server's own time of starting does not tell when only its sessions were ended.
   */
  get serverLife(): string {
    return this.#serverLife;
  }

  /** Whether it can take no more queries. */
  get broken(): boolean {
    return this.#broken;
  }

  /** Queries sent that are not answered yet. */
  get inFlight(): number {
    return this.#inFlight;
  }

  /** Runs one statement; those sent before it are answered first. */
  async query<R>(sql: string, parameters: readonly unknown[]): Promise<SessionResult<R>> {
    const values = parameters.map(toSent);
    const name = this.#nameFor(sql);
    const { rows, fields, command, rowCount } = await this.#send(() =>
      this.#client.query<unknown[]>({
        text: sql,
        values,
        rowMode: 'array',
        ...(name === undefined ? {} : { name }),
      }),
    );
    const isWrite = WRITES.has(command);
    const changed = isWrite ? (rowCount ?? 0) : 0;
    const result = { command, wrote: changed > 0, rows: toRows<R>(fields, rows as Text[][]) };
    return isWrite ? { ...result, numAffectedRows: BigInt(changed) } : result;
  }

  /** Runs statements that take nothing, such as COMMIT, and returns what the last of them did. */
  async run(sql: string): Promise<{ command: string; text: string }> {
    const answer: pg.QueryResult | pg.QueryResult[] = await this.#send(() =>
      this.#client.query(sql),
    );
    const last = Array.isArray(answer) ? answer.at(-1) : answer;
    const [value] = Object.values((last?.rows[0] ?? {}) as Record<string, unknown>);
    return { command: last?.command ?? '', text: String(value ?? '') };
  }

  /** Calls `listener` with what other sessions say on channels that this one listens to. */
  onNotification(listener: (payload: string) => void): void {
    this.#client.on('notification', ({ payload }) => listener(payload ?? ''));
  }

  /** Ends the session; the server undoes what was not committed. */
  async close(): Promise<void> {
    this.#broken = true;
    try {
      await this.#client.end();
    } catch {
      // It is over, which is all that was asked.
      this.#broken = true;
    }
  }

  async #send<T>(query: () => Promise<T>): Promise<T> {
    this.#inFlight += 1;
    try {
      return await query();
    } catch (error) {
      if (endsConnection(error) && !this.#broken) void this.close();
      throw translatePostgresError(error, this.label);
    } finally {
      this.#inFlight -= 1;
    }
  }

  #nameFor(sql: string): string | undefined {
    const known = this.#names.has(sql);
    if (!known) {
      if (this.#names.size < PREPARED_AT_MOST) this.#names.set(sql, undefined);
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

  async #look(): Promise<void> {
    const { text } = await this.run(LOOK);
    const [version = '', life = ''] = text.split(' ', 2);
    this.#serverLife = life;
    if (Number(version) >= OLDEST_SERVER) return;
    throw new PreconditionError(
      'STORE_POSTGRES_TOO_OLD',
      `${this.label} is on PostgreSQL ${version}; Writ needs version 14 or newer.`,
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

function sessionSettings({ schema, statementTimeoutMs, lockTimeoutMs }: SessionSettings): string {
  return [
    `set search_path to ${pg.escapeIdentifier(schema)}`,
    // The wait for the store's lock is bounded by itself; who has it sets the time of a statement alone.
    `set statement_timeout to ${statementTimeoutMs + lockTimeoutMs}`,
    `set lock_timeout to ${lockTimeoutMs}`,
    `set timezone to 'UTC'`,
    `set datestyle to 'ISO'`,
    `set bytea_output to 'hex'`,
    `set synchronous_commit to on`,
  ].join('; ');
}
