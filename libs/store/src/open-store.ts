import type { CommitObserver } from './commit-observer.ts';
import { openPostgresStore } from './postgres/postgres-store.ts';
import type { Migrations } from './schema/migrations.ts';
import { openSqliteStore, type StoreLimits } from './sqlite/sqlite-store.ts';
import type { Store, StoreLocation } from './store.ts';

/** How to open a store. */
export interface OpenStoreOptions {
  readonly location: StoreLocation;
  /** Every migration of the service by name: `0001_what_it_does`, in the order of names. */
  readonly migrations: Migrations;
  /** The service whose state this is; messages name it where there is no file to name. */
  readonly service: string;
  readonly limits?: Partial<StoreLimits>;
  readonly observer?: CommitObserver | undefined;
}

/**
 * Opens the state of one service and runs the migrations that it lacks, all or none, once however
 * many processes start. The file and its folder, or the schema, are made when they are not there.
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
