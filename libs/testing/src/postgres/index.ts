export { type OwnPostgres, startOwnPostgres } from './own-postgres.ts';
export { type PostgresLocation, postgresAtHand, postgresLocation } from './postgres-location.ts';
export { clearPostgresRuns, endPostgresRun, setUpPostgresRun } from './postgres-run.ts';
export { chooseTestStore, storeVariables, testStore } from './test-store.ts';
