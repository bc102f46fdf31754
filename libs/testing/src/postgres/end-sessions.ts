import pg from 'pg';
import type { PostgresLocation } from './test-store.ts';

const ADMIN_SHUTDOWN = '57P01';

/** Ends the sessions of a database that have a transaction, as a failing network would. */
export async function endSessions({ url }: PostgresLocation): Promise<void> {
  await terminate(url, "state <> 'idle'", []);
}

/** Ends all sessions of one application, as the server does when the process of the application is killed. */
export async function endSessionsOf({ url }: PostgresLocation, application: string): Promise<void> {
  await terminate(url, 'application_name = $1', [application]);
}

async function terminate(url: string, where: string, values: readonly string[]): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  // A concurrent call may end this session.
  client.on('error', () => undefined);
  await client.connect();
  try {
    await client.query(
      `select pg_terminate_backend(pid) from pg_stat_activity
      where datname = current_database() and pid <> pg_backend_pid() and ${where}`,
      [...values],
    );
  } catch (error) {
    if ((error as { readonly code?: string }).code !== ADMIN_SHUTDOWN) throw error;
  } finally {
    await client.end();
  }
}
