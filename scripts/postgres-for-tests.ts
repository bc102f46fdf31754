import {
  clearPostgresRuns,
  configureTestStore,
  endPostgresRun,
  setUpPostgresRun,
} from '@writ/testing/postgres';

/** Before a vitest run: all its processes share one PostgreSQL server, started by the first that needs it. */
export async function setup(): Promise<void> {
  await clearPostgresRuns();
  setUpPostgresRun();
  await configureTestStore();
}

/** After the run: stops the server and deletes its data. */
export async function teardown(): Promise<void> {
  await endPostgresRun();
}
