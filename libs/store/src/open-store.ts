import { readMarker } from './marks/marker-file.ts';
import { openPostgresStore } from './postgres/postgres-store.ts';
import { openSqliteStore, type StoreOptions } from './sqlite/sqlite-store.ts';
import type { Store, StoreLocation } from './store.ts';

/** Options of {@link openStore}. */
export interface OpenStoreOptions extends Omit<StoreOptions, 'marker'> {
  readonly location: StoreLocation;
}

/**
 * Opens the store of a service and runs the missing migrations in one transaction; if several processes start together,
 * only one of them runs the migrations. A missing file is created with its directory, unless its marker shows that it
 * had data. A missing schema is always created; if the marker shows that it had data, the schema stays empty and
 * STORE_EMPTIED is thrown.
 * @throws PreconditionError STORE_EMPTIED, STORE_BEHIND, STORE_SCHEMA_TOO_NEW, STORE_MIGRATION_CHANGED,
 *   STORE_POSTGRES_TOO_OLD, STORE_WITHOUT_LOCKS; InvalidRequestError INVALID_FILE for an unreadable marker;
 *   InternalError STORE_MIGRATION_FAILED, STORE_INVALID_MIGRATION_NAME, STORE_INVALID_SCHEMA_NAME; UnavailableError
 *   STORE_DISK_FAILED, STORE_WAL_UNSUPPORTED, STORE_BUSY, STORE_UNREACHABLE; OverloadedError STORE_DISK_FULL;
 *   DataLossError STORE_CORRUPT; other errors of the file system or the server, such as a wrong password, unchanged
 */
export async function openStore<DB>(options: OpenStoreOptions): Promise<Store<DB>> {
  const { location } = options;
  const marker = location.marker && readMarker(location.marker.file);
  switch (location.dialect) {
    case 'sqlite':
      return await openSqliteStore<DB>(location.file, { ...options, marker });
    case 'postgres':
      return await openPostgresStore<DB>(location, { ...options, marker });
  }
}
