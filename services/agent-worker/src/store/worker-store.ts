import {
  type CommitObserver,
  initialMigration,
  openStore,
  type Store,
  type StoreLocation,
} from '@writ/store';
import type { Kysely, Transaction } from 'kysely';
import { TABLES, type WorkerDatabase } from './schema.ts';

/** The worker's database. */
export type WorkerStore = Store<WorkerDatabase>;

/** A transaction of the worker's database. */
export type WorkerTransaction = Transaction<WorkerDatabase>;

/** A connection for reads: the store's `db` or a transaction. */
export type WorkerReader = Kysely<WorkerDatabase>;

/**
 * Opens the worker's store.
 * @throws the errors of openStore
 */
export function openWorkerStore(
  location: StoreLocation,
  observer?: CommitObserver,
): Promise<WorkerStore> {
  return openStore<WorkerDatabase>({
    location,
    migrations: initialMigration(TABLES),
    service: 'agent-worker',
    observer,
  });
}
