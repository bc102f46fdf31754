import { InternalError } from '@writ/kernel';
import { PostgresSession, type SessionSettings } from './postgres-session.ts';

// What needs no quotes anywhere, also not in a connection string or a dump.
const NAME = /^[a-z][a-z0-9_]{0,62}$/;

/**
 * Makes the schema when it is not there; a role that owns its schema needs no right to make others.
 * @throws InternalError STORE_INVALID_SCHEMA_NAME; what PostgresSession.open throws
 */
export async function prepareSchema(settings: SessionSettings): Promise<void> {
  const { schema } = settings;
  if (!NAME.test(schema)) {
    throw new InternalError(
      'STORE_INVALID_SCHEMA_NAME',
      `The schema name ${schema} must be lower-case letters, digits and underscores.`,
      { schema },
    );
  }
  const session = await PostgresSession.open(settings, '');
  try {
    const there = `select 1 from pg_namespace where nspname = '${schema}'`;
    if ((await session.query(there, [])).rows.length > 0) return;
    // Concurrent starts would otherwise both find it missing, and one of them fail.
    await session.run(
      `begin; select pg_advisory_xact_lock(hashtextextended('writ schema ${schema}', 0)); create schema if not exists ${schema}; commit`,
    );
  } finally {
    await session.close();
  }
}
