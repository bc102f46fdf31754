import {
  type CommitObserver,
  createReplicas,
  openStore,
  type Replicas,
  type Store,
  type StoreLocation,
} from '@writ/store';
import type { Kysely, Transaction } from 'kysely';
import { gatewayMigrations } from './migrations.ts';
import type { GatewayDatabase } from './schema.ts';

/** The tool gateway's state. */
export interface GatewayStore extends Store<GatewayDatabase> {
  /** The gateways that share it; this one leaves them when the store is closed. */
  readonly replicas: Replicas;
}

/** A transaction of the tool gateway's store. */
export type GatewayTransaction = Transaction<GatewayDatabase>;

/** Where rows can be read: the store's `db`, or a transaction. */
export type GatewayReader = Kysely<GatewayDatabase>;

/**
 * Opens the tool gateway's store.
 * @throws what openStore throws
 */
export async function openGatewayStore(
  location: StoreLocation,
  observer?: CommitObserver,
): Promise<GatewayStore> {
  const store = await openStore<GatewayDatabase>({
    location,
    migrations: gatewayMigrations,
    service: 'tool-gateway',
    observer,
  });
  const replicas = createReplicas(store.db);
  try {
    await replicas.start();
  } catch (error) {
    await store.close();
    throw error;
  }
  return {
    dialect: store.dialect,
    db: store.db,
    replicas,
    get commits() {
      return store.commits;
    },
    get backgroundCommits() {
      return store.backgroundCommits;
    },
    transaction: (work, options) => store.transaction(work, options),
    async close() {
      await store.close();
      await replicas.stop();
    },
  };
}
