import {
  type CommitObserver,
  initialMigration,
  openStore,
  type Store,
  type StoreLocation,
} from '@writ/store';
import type { Kysely, Transaction } from 'kysely';
import { type ProxyDatabase, TABLES } from './schema.ts';

/** The database of agent-proxy. */
export type ProxyStore = Store<ProxyDatabase>;

/** A transaction of this database. */
export type ProxyTransaction = Transaction<ProxyDatabase>;

/** A connection for reads: the store's `db` or a transaction. */
export type ProxyReader = Kysely<ProxyDatabase>;

/**
 * Opens the store.
 * @throws what openStore throws
 */
export function openProxyStore(
  location: StoreLocation,
  observer?: CommitObserver,
): Promise<ProxyStore> {
  return openStore<ProxyDatabase>({
    location,
    migrations: initialMigration(TABLES),
    service: 'agent-proxy',
    observer,
  });
}
