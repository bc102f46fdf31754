import { type CommitObserver, openStore, type Store, type StoreLocation } from '@writ/store';
import type { Kysely, Transaction } from 'kysely';
import { workerMigrations } from './migrations.ts';
import type { WorkerDatabase } from './schema.ts';

/** The worker's state. */
export type WorkerStore = Store<WorkerDatabase>;

/** A transaction of it. */
export type WorkerTransaction = Transaction<WorkerDatabase>;

/** Where rows can be read: the store's `db`, or a transaction. */
export type WorkerReader = Kysely<WorkerDatabase>;

/**
 * Opens the worker's store.
 * @throws what openStore throws
 */
export function openWorkerStore(
  location: StoreLocation,
  observer?: CommitObserver,
): Promise<WorkerStore> {
  return openStore<WorkerDatabase>({
    location,
    migrations: workerMigrations,
    service: 'agent-worker',
    observer,
  });
}
