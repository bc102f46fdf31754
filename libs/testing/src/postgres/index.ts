export { type PostgresLocation, postgresAtHand, postgresLocation } from './postgres-location.ts';
export { clearPostgresRuns, endPostgresRun, setUpPostgresRun } from './postgres-run.ts';
