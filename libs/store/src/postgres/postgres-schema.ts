import { randomInt } from 'node:crypto';
import { InternalError, PreconditionError } from '@writ/kernel';
import { PostgresSession, type SessionSettings } from './postgres-session.ts';

// Names that need no quoting anywhere, including connection strings and dumps.
const NAME = /^[a-z][a-z0-9_]{0,62}$/;

/**
 * Creates the schema if it does not exist. A role whose schema already exists does not need the privilege to create
 * schemas.
 * @throws InternalError STORE_INVALID_SCHEMA_NAME; PreconditionError STORE_WITHOUT_LOCKS; the errors of
 *   PostgresSession.openAtStart
 */
export async function prepareSchema(settings: SessionSettings): Promise<void> {
  const { schema } = settings;
  if (!NAME.test(schema)) {
    throw new InternalError(
      'STORE_INVALID_SCHEMA_NAME',
      `Schema name ${schema} must consist of 1 to 63 characters (a-z, 0-9, _) and begin with a letter.`,
      { schema },
    );
  }
  const session = await PostgresSession.openAtStart(settings, '');
  try {
    await requireLocks(settings, session);
    const exists = `select 1 from pg_namespace where nspname = '${schema}'`;
    if ((await session.query(exists, [])).rows.length > 0) return;
    // Takes a lock, because two processes that start at the same time could both find the schema missing, and one would
    // fail.
    await session.run(
      `begin; select pg_advisory_xact_lock(hashtextextended('writ schema ${schema}', 0)); create schema if not exists ${schema}; commit`,
    );
  } finally {
    await session.close();
  }
}

/** Rejects a server on which advisory locks have no effect, such as some PostgreSQL-compatible databases. */
async function requireLocks(settings: SessionSettings, session: PostgresSession): Promise<void> {
  const lock = `select pg_try_advisory_lock(${randomInt(2 ** 47)})::int`;
  const other = await PostgresSession.openAtStart(settings, '');
  try {
    const granted = [await session.run(lock), await other.run(lock)].map(({ text }) => text);
    if (granted.join() === '1,0') return;
  } finally {
    await other.close();
  }
  throw new PreconditionError(
    'STORE_WITHOUT_LOCKS',
    `The server of ${settings.label} grants two sessions the same advisory lock, so replicas would not exclude each other; use PostgreSQL.`,
  );
}
