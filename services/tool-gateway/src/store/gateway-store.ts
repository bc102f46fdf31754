import {
  type CommitObserver,
  initialMigration,
  openSharedStore,
  type SharedStore,
  type StoreLocation,
} from '@writ/store';
import type { Kysely, Transaction } from 'kysely';
import { type GatewayDatabase, TABLES } from './schema.ts';

/** The tool gateway's store, and the replicas that share it. */
export type GatewayStore = SharedStore<GatewayDatabase>;

/** A transaction of the store. */
export type GatewayTransaction = Transaction<GatewayDatabase>;

/** A reader: the store's `db`, or a transaction. */
export type GatewayReader = Kysely<GatewayDatabase>;

/**
 * Opens the tool gateway's store.
 * @throws what openStore throws
 */
export async function openGatewayStore(
  location: StoreLocation,
  observer?: CommitObserver,
): Promise<GatewayStore> {
  return await openSharedStore<GatewayDatabase>({
    location,
    migrations: initialMigration(TABLES),
    service: 'tool-gateway',
    observer,
  });
}
