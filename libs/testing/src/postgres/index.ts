export { type PostgresLocation, postgresAtHand, postgresLocation } from './postgres-location.ts';
export { clearPostgresRuns, endPostgresRun, setUpPostgresRun } from './postgres-run.ts';
export { chooseTestStore, testStore } from './test-store.ts';
