export { type DedicatedPostgres, startDedicatedPostgres } from './dedicated-postgres.ts';
export { endSessions, endSessionsOf } from './end-sessions.ts';
export { isPostgresAvailable } from './postgres-availability.ts';
export { clearPostgresRuns, endPostgresRun, setUpPostgresRun } from './postgres-run.ts';
export {
  configureTestStore,
  type PostgresLocation,
  postgresLocation,
  type SqliteLocation,
  storeVariables,
  testStore,
} from './test-store.ts';
