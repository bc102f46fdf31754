import {
  type CommitObserver,
  openSharedStore,
  type SharedStore,
  type StoreLocation,
} from '@writ/store';
import type { Kysely, Transaction } from 'kysely';
import { Changes, notedChanges } from './change/changes.ts';
import { supervisorMigrations as migrations } from './migrations.ts';
import type { SupervisorDatabase } from './schema.ts';

/** A transaction of the supervisor's store. */
export type SupervisorTransaction = Transaction<SupervisorDatabase>;

/** The store's `db`, or a transaction. */
export type SupervisorReader = Kysely<SupervisorDatabase>;

/** The supervisor's store, which notifies subscribers of changes after each commit. */
export interface SupervisorStore extends SharedStore<SupervisorDatabase> {
  readonly changes: Changes;
}

/**
 * Opens the supervisor's store.
 * @param onEvents called after every commit that added to the outbox; must not throw
 * @throws what openStore throws
 */
export async function openSupervisorStore(
  location: StoreLocation,
  onEvents: () => void,
  observer?: CommitObserver,
): Promise<SupervisorStore> {
  let changes: Changes | undefined;
  const onCommit = (trx: SupervisorTransaction): void => {
    const topics = notedChanges(trx);
    if (topics.has('outbox')) onEvents();
    changes?.announce(topics);
  };
  const service = 'supervisor';
  const store = await openSharedStore({ location, migrations, service, observer, onCommit });
  changes = new Changes(store.replicas);
  return Object.assign(store, { changes });
}
