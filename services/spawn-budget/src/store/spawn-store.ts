import { type CommitObserver, openStore, type Store, type StoreLocation } from '@writ/store';
import type { Kysely, Transaction } from 'kysely';
import { spawnMigrations } from './migrations.ts';
import type { SpawnDatabase } from './schema.ts';

/** The state of spawn-budget. */
export type SpawnStore = Store<SpawnDatabase>;

/** A transaction of it. */
export type SpawnTransaction = Transaction<SpawnDatabase>;

/** Where rows can be read: the store's `db`, or a transaction. */
export type SpawnReader = Kysely<SpawnDatabase>;

/** A run of a tenant. */
export interface PoolKey {
  readonly tenant: string;
  readonly runId: string;
}

/**
 * Opens spawn-budget's store.
 * @throws what openStore throws
 */
export async function openSpawnStore(
  location: StoreLocation,
  observer?: CommitObserver,
): Promise<SpawnStore> {
  return await openStore<SpawnDatabase>({
    location,
    migrations: spawnMigrations,
    service: 'spawn-budget',
    observer,
  });
}
