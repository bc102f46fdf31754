import { randomBytes } from 'node:crypto';
import { postgresBinaries } from './postgres-binaries.ts';
import { startedPostgres } from './postgres-server.ts';

/** Where a store can be opened, with the shape of `StoreLocation`. */
export interface PostgresLocation {
  readonly dialect: 'postgres';
  readonly url: string;
  readonly schema: string;
}

let told = false;

/**
 * Whether tests can have a PostgreSQL here. Where they cannot, it says so once; with
 * WRIT_REQUIRE_SERVICES=1 that is a failure.
 * @throws Error naming the package that is missing
 */
export function isPostgresAvailable(): boolean {
  if (postgresBinaries() !== undefined) return true;
  const missing = 'PostgreSQL is not installed (Debian: apt-get install postgresql)';
  if (process.env.WRIT_REQUIRE_SERVICES === '1') throw new Error(`${missing}; tests need it.`);
  // stderr, since the reporter keeps the console of tests that pass to itself.
  if (!told) process.stderr.write(`skipped: what runs on PostgreSQL, since ${missing}\n`);
  told = true;
  return false;
}

/** An empty schema of its own on this run's server. */
export async function postgresLocation(): Promise<PostgresLocation> {
  const binaries = postgresBinaries();
  if (binaries === undefined) throw new Error('PostgreSQL is not installed');
  const url = await startedPostgres(binaries);
  return { dialect: 'postgres', url, schema: `test_${randomBytes(8).toString('hex')}` };
}
