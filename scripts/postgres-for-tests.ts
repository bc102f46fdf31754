import {
  clearPostgresRuns,
  configureTestStore,
  endPostgresRun,
  setUpPostgresRun,
} from '@writ/testing/postgres';

/**
 * Called before a vitest run. All processes of the run share one PostgreSQL server, started by the first process that
 * needs it.
 */
export async function setup(): Promise<void> {
  await clearPostgresRuns();
  setUpPostgresRun();
  await configureTestStore();
}

/** Called after the run. Stops the server and deletes its data. */
export async function teardown(): Promise<void> {
  await endPostgresRun();
}
