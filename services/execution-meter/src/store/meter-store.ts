import { openStore, type Store, type StoreLocation, type TransactionOptions } from '@writ/store';
import type { Kysely, Transaction } from 'kysely';
import { migrations } from './migrations.ts';
import type { MeterDatabase } from './schema.ts';

/** A transaction of the meter's store. */
export type MeterTransaction = Transaction<MeterDatabase>;

/** Where rows can be read: the store's `db`, or a transaction. */
export type MeterReader = Kysely<MeterDatabase>;

/** The meter's state. */
export type MeterStore = Store<MeterDatabase>;

/**
 * Opens the meter's store.
 * @param onCommit called with every transaction once it is durable; must not throw
 * @throws what openStore throws
 */
export async function openMeterStore(
  location: StoreLocation,
  onCommit: (trx: MeterTransaction) => void,
): Promise<MeterStore> {
  const store = await openStore<MeterDatabase>({
    location,
    migrations,
    service: 'execution-meter',
  });
  return {
    dialect: store.dialect,
    db: store.db,
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
    close: () => store.close(),
  };
}
