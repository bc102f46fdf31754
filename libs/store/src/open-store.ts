import { NotImplementedError } from '@writ/kernel';
import type { Migrations } from './migrations.ts';
import { openSqliteStore, type StoreLimits } from './sqlite-store.ts';
import type { Store, StoreLocation } from './store.ts';

/** How to open a store. */
export interface OpenStoreOptions {
  readonly location: StoreLocation;
  /** Every migration of the service by name: `0001_what_it_does`, in the order of names. */
  readonly migrations: Migrations;
  /** The service whose state this is; messages name it where there is no file to name. */
  readonly service: string;
  readonly limits?: Partial<StoreLimits>;
}

/**
 * Opens the state of one service and runs the migrations that it lacks, all or none. The file and
 * its folder are made when they are not there.
 * @throws PreconditionError STORE_NEWER_THAN_CODE, STORE_MIGRATION_CHANGED; InternalError
 *   STORE_MIGRATION_FAILED, STORE_BAD_MIGRATION_NAME; UnavailableError STORE_DISK_FAILED,
 *   STORE_NO_WAL, STORE_BUSY; DataLossError STORE_CORRUPT; NotImplementedError STORE_NO_POSTGRES
 */
export async function openStore<DB>(options: OpenStoreOptions): Promise<Store<DB>> {
  const { location, migrations, service, limits } = options;
  switch (location.dialect) {
    case 'sqlite':
      return await openSqliteStore<DB>(location.file, migrations, service, limits);
    case 'postgres':
      throw new NotImplementedError(
        'STORE_NO_POSTGRES',
        `The store of ${service} cannot use location.dialect 'postgres' yet; set it to 'sqlite'.`,
        { field: 'location.dialect' },
      );
  }
}
