import {
  clearPostgresRuns,
  configureTestStore,
  endPostgresRun,
  setUpPostgresRun,
} from '@writ/testing/postgres';

/** Before a run of vitest: lets all its processes share one PostgreSQL, started by the first that needs it. */
export async function setup(): Promise<void> {
  await clearPostgresRuns();
  setUpPostgresRun();
  await configureTestStore();
}

/** After it: stops that server and deletes its data. */
export async function teardown(): Promise<void> {
  await endPostgresRun();
}
