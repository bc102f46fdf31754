import { InternalError, isWritError, PreconditionError } from '@writ/kernel';
import type { Kysely } from 'kysely';
import { type Migration, Migrator } from 'kysely/migration';

/** Migrations by name. A released name is never changed or reused. */
export type Migrations = Readonly<Record<string, Migration>>;

/** Rejects a database that is not the expected one. */
export interface MigrationGuard {
  /** Called if no migration has been applied yet. */
  refuseEmpty(): void;
  /** Called after the missing migrations have run, in the same transaction. */
  check(trx: Kysely<unknown>): Promise<void>;
}

/** The table of applied migrations. */
interface MigrationDatabase {
  migration: { name: string; timestamp: string };
}

const TABLE = 'migration';
const LOCK_TABLE = 'migration_lock';
// Four digits first, so that names sort by time.
const NAME = /^\d{4}_[a-z0-9_]{1,100}$/;

/**
 * Runs the missing migrations in one transaction, so that a crash leaves either the old schema or the new one.
 * `label` names the database in error messages. An error of `guard` leaves the database unchanged.
 */
export async function migrate(
  db: Kysely<unknown>,
  migrations: Migrations,
  label: string,
  guard?: MigrationGuard,
): Promise<void> {
  const known = Object.keys(migrations).sort();
  for (const name of known) refuseBadName(name);
  await (db as Kysely<MigrationDatabase>).transaction().execute(async (trx) => {
    const applied = await appliedNames(trx);
    if (applied.length === 0) guard?.refuseEmpty();
    refuseUnknown(applied, known, label);
    const { error, results } = await new Migrator({
      db: trx,
      provider: { getMigrations: async () => ({ ...migrations }) },
      migrationTableName: TABLE,
      migrationLockTableName: LOCK_TABLE,
    }).migrateToLatest();
    if (error === undefined) {
      await guard?.check(trx as unknown as Kysely<unknown>);
      return;
    }
    // The database is unreachable or out of space, so the start can succeed later without changes.
    if (isWritError(error)) throw error;
    const failed = results?.find(({ status }) => status === 'Error')?.migrationName;
    const cause = (error instanceof Error ? error.message : String(error)).replace(/\.$/, '');
    throw new InternalError(
      'STORE_MIGRATION_FAILED',
      // Includes the cause, because a service that fails to start prints only the message.
      `Migration ${failed ?? 'bookkeeping'} of ${label} failed: ${cause}; the database was not changed.`,
      failed === undefined ? {} : { migration: failed },
      { cause: error },
    );
  });
}

async function appliedNames(db: Kysely<MigrationDatabase>): Promise<string[]> {
  const tables = await db.introspection.getTables({ withInternalKyselyTables: true });
  if (!tables.some(({ name }) => name === TABLE)) return [];
  const rows = await db.selectFrom(TABLE).select('name').execute();
  // Sorted here, because collations differ between databases.
  return rows.map(({ name }) => name).sort();
}

function refuseUnknown(applied: readonly string[], known: readonly string[], label: string): void {
  const version = applied.at(-1);
  const newest = known.at(-1) ?? 'none';
  const unknown = applied.find((name) => !known.includes(name));
  if (unknown !== undefined && unknown > newest) {
    throw new PreconditionError(
      'STORE_SCHEMA_TOO_NEW',
      `${label} is at version ${version}, but this release supports versions up to ${newest}; start the newer release or restore an older backup.`,
      { version: version ?? '', newest_known: newest },
    );
  }
  if (unknown !== undefined) {
    throw new PreconditionError(
      'STORE_MIGRATION_CHANGED',
      `${label} has run migration ${unknown}, which this release does not have; it belongs to another service or was renamed.`,
      { migration: unknown },
    );
  }
  const late = known.find(
    (name) => version !== undefined && name < version && !applied.includes(name),
  );
  if (late !== undefined) {
    throw new PreconditionError(
      'STORE_MIGRATION_CHANGED',
      `Migration ${late} sorts before ${version}, which ${label} has run already; rename it to sort last.`,
      { migration: late },
    );
  }
}

function refuseBadName(name: string): void {
  if (NAME.test(name)) return;
  throw new InternalError(
    'STORE_INVALID_MIGRATION_NAME',
    `Migration ${name} must have a name of four digits, an underscore and lower-case words, such as 0001_initial.`,
    { migration: name },
  );
}
