import {
  type CommitObserver,
  initialMigration,
  openStore,
  type Store,
  type StoreLocation,
} from '@writ/store';
import { type SpawnDatabase, TABLES } from './schema.ts';

/** The store of spawn-budget. */
export type SpawnStore = Store<SpawnDatabase>;

/**
 * Opens spawn-budget's store.
 * @throws the errors of openStore
 */
export async function openSpawnStore(
  location: StoreLocation,
  observer?: CommitObserver,
): Promise<SpawnStore> {
  return await openStore<SpawnDatabase>({
    location,
    migrations: initialMigration(TABLES),
    service: 'spawn-budget',
    observer,
  });
}
