import type { CommitObserver } from './commit-observer.ts';
import { openPostgresStore } from './postgres/postgres-store.ts';
import type { Migrations } from './schema/migrations.ts';
import { openSqliteStore, type StoreLimits } from './sqlite/sqlite-store.ts';
import type { Store, StoreLocation } from './store.ts';

/** Options of {@link openStore}. */
export interface OpenStoreOptions {
  readonly location: StoreLocation;
  /** The migrations of the service by name, such as `0001_initial`. */
  readonly migrations: Migrations;
  /** Name of the service, for error messages and the database's own views. */
  readonly service: string;
  readonly limits?: Partial<StoreLimits>;
  readonly observer?: CommitObserver | undefined;
}

/**
 * Opens the store of a service and runs the missing migrations in one transaction, once for all processes that start
 * together. A missing file with its directory, or a missing schema, is created.
 * @throws PreconditionError STORE_SCHEMA_TOO_NEW, STORE_MIGRATION_CHANGED; InternalError
 *   STORE_MIGRATION_FAILED, STORE_INVALID_MIGRATION_NAME; UnavailableError STORE_DISK_FAILED,
 *   STORE_WAL_UNSUPPORTED, STORE_BUSY, STORE_UNREACHABLE; DataLossError STORE_CORRUPT; PreconditionError
 *   STORE_POSTGRES_TOO_OLD
 */
export async function openStore<DB>(options: OpenStoreOptions): Promise<Store<DB>> {
  const { location, migrations, service, limits, observer } = options;
  switch (location.dialect) {
    case 'sqlite':
      return await openSqliteStore<DB>(location.file, migrations, service, limits, observer);
    case 'postgres':
      return await openPostgresStore<DB>(location, migrations, service, limits, observer);
  }
}
