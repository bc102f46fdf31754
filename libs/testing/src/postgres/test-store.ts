import { createHash, randomBytes } from 'node:crypto';
import { postgresBinaries } from './postgres-binaries.ts';
import type { PostgresLocation } from './postgres-location.ts';
import { startedPostgres } from './postgres-server.ts';

const URL_SETTING = 'WRIT_TEST_POSTGRES_URL';

/** A SQLite file, or `:memory:`, with the shape of `StoreLocation`. */
export interface SqliteLocation {
  readonly dialect: 'sqlite';
  readonly file: string;
}

/**
 * Where a service under test keeps its state: at `sqlite`, or, with WRIT_TEST_STORE=postgres, in a
 * schema that stands for that file. The same file is the same schema, as for a restart.
 */
export function testStore(sqlite: SqliteLocation): SqliteLocation | PostgresLocation {
  const url = process.env[URL_SETTING];
  if (url === undefined) return sqlite;
  const { file } = sqlite;
  const identity = file === ':memory:' ? randomBytes(16) : file;
  const schema = `test_${createHash('sha256').update(identity).digest('hex').slice(0, 16)}`;
  return { dialect: 'postgres', url, schema };
}

/** The settings that let a service's own process keep its state at `location`; none for a file. */
export function storeVariables(
  service: string,
  location: SqliteLocation | PostgresLocation,
): Readonly<Record<string, string>> {
  if (location.dialect === 'sqlite') return {};
  const name = `WRIT_${service.toUpperCase().replaceAll('-', '_')}_DATABASE`;
  return { [`${name}_URL`]: location.url, [`${name}_SCHEMA`]: location.schema };
}

/** Starts the server at once when the run asks for PostgreSQL everywhere. */
export async function configureTestStore(): Promise<void> {
  if (process.env.WRIT_TEST_STORE !== 'postgres') return;
  const binaries = postgresBinaries();
  if (binaries === undefined) throw new Error('WRIT_TEST_STORE=postgres needs PostgreSQL here.');
  process.env[URL_SETTING] = await startedPostgres(binaries);
}
