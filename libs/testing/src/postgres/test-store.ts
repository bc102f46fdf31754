import { createHash, randomBytes } from 'node:crypto';
import pg from 'pg';
import { postgresBinaries } from './postgres-availability.ts';
import { startedPostgres } from './postgres-server.ts';

const URL_SETTING = 'WRIT_TEST_POSTGRES_URL';

/** A SQLite file or `:memory:`, with the shape of `StoreLocation`. */
export interface SqliteLocation {
  readonly dialect: 'sqlite';
  readonly file: string;
}

/** A schema of a PostgreSQL database, with the shape of `StoreLocation`. */
export interface PostgresLocation {
  readonly dialect: 'postgres';
  readonly url: string;
  readonly schema: string;
}

/**
 * Returns the location of a store under test: `sqlite` itself, or, with WRIT_TEST_STORE=postgres, a schema whose name
 * is derived from the file, or random for `:memory:`. The same file gives the same schema, so that restarts find it.
 */
export function testStore(sqlite: SqliteLocation): SqliteLocation | PostgresLocation {
  const url = process.env[URL_SETTING];
  if (url === undefined) return sqlite;
  const { file } = sqlite;
  const identity = file === ':memory:' ? randomBytes(16) : file;
  const schema = `test_${createHash('sha256').update(identity).digest('hex').slice(0, 16)}`;
  return { dialect: 'postgres', url, schema };
}

/**
 * Returns the location of a new schema on the PostgreSQL server of this test run, in a database that only this process
 * uses: tests may terminate all connections to it, and its advisory locks cannot conflict with those of other
 * processes.
 */
export async function postgresLocation(): Promise<PostgresLocation> {
  databaseOfProcess ??= createDatabase();
  const url = await databaseOfProcess;
  return { dialect: 'postgres', url, schema: `test_${randomBytes(8).toString('hex')}` };
}

let databaseOfProcess: Promise<string> | undefined;

async function createDatabase(): Promise<string> {
  const binaries = postgresBinaries();
  if (binaries === undefined) throw new Error('PostgreSQL is not installed');
  const url = new URL(await startedPostgres(binaries));
  const database = `test_${randomBytes(8).toString('hex')}`;
  const admin = new pg.Client({ connectionString: url.href });
  await admin.connect();
  try {
    await admin.query(`create database ${database}`);
  } finally {
    await admin.end();
  }
  url.pathname = `/${database}`;
  return url.href;
}

/** Returns the environment variables that make a service's process use `location`; none for SQLite. */
export function storeVariables(
  service: string,
  location: SqliteLocation | PostgresLocation,
): Readonly<Record<string, string>> {
  if (location.dialect === 'sqlite') return {};
  const name = `WRIT_${service.toUpperCase().replaceAll('-', '_')}_DATABASE`;
  return { [`${name}_URL`]: location.url, [`${name}_SCHEMA`]: location.schema };
}

/** Starts PostgreSQL when WRIT_TEST_STORE=postgres selects it for all stores under test. */
export async function configureTestStore(): Promise<void> {
  if (process.env.WRIT_TEST_STORE !== 'postgres') return;
  const binaries = postgresBinaries();
  if (binaries === undefined) {
    throw new Error('WRIT_TEST_STORE=postgres requires PostgreSQL, which is not installed.');
  }
  process.env[URL_SETTING] = await startedPostgres(binaries);
}
