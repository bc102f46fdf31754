export { type DedicatedPostgres, startDedicatedPostgres } from './dedicated-postgres.ts';
export {
  isPostgresAvailable,
  type PostgresLocation,
  postgresLocation,
} from './postgres-location.ts';
export { clearPostgresRuns, endPostgresRun, setUpPostgresRun } from './postgres-run.ts';
export { configureTestStore, storeVariables, testStore } from './test-store.ts';
