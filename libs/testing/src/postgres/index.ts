export { type DedicatedPostgres, startDedicatedPostgres } from './dedicated-postgres.ts';
export { endSessions } from './end-sessions.ts';
export { isPostgresAvailable } from './postgres-availability.ts';
export { clearPostgresRuns, endPostgresRun, setUpPostgresRun } from './postgres-run.ts';
export {
  configureTestStore,
  type PostgresLocation,
  postgresLocation,
  storeVariables,
  testStore,
} from './test-store.ts';
