import {
  type CommitObserver,
  createReplicas,
  openStore,
  type Replicas,
  type Store,
  type StoreLocation,
  type TransactionOptions,
} from '@writ/store';
import type { Kysely, Transaction } from 'kysely';
import { migrations } from './migrations.ts';
import type { MeterDatabase } from './schema.ts';

/** A transaction of the meter's store. */
export type MeterTransaction = Transaction<MeterDatabase>;

/** Where rows can be read: the store's `db`, or a transaction. */
export type MeterReader = Kysely<MeterDatabase>;

/** The meter's state. */
export interface MeterStore extends Store<MeterDatabase> {
  /** The meters that share it; this one leaves them when the store is closed. */
  readonly replicas: Replicas;
}

/**
 * Opens the meter's store.
 * @param onCommit called with every transaction once it is durable; must not throw
 * @throws what openStore throws
 */
export async function openMeterStore(
  location: StoreLocation,
  onCommit: (trx: MeterTransaction) => void,
  observer?: CommitObserver,
): Promise<MeterStore> {
  const store = await openStore<MeterDatabase>({
    location,
    migrations,
    service: 'execution-meter',
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
    async transaction<T>(
      work: (trx: MeterTransaction) => Promise<T>,
      options?: TransactionOptions,
    ): Promise<T> {
      const { result, done } = await store.transaction(
        async (trx) => ({ result: await work(trx), done: trx }),
        options,
      );
      onCommit(done);
      return result;
    },
    async close() {
      await store.close();
      await replicas.stop();
    },
  };
}
