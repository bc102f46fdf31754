import {
  type CommitObserver,
  openSharedStore,
  type SharedStore,
  type StoreLocation,
} from '@writ/store';
import type { Kysely, Transaction } from 'kysely';
import { migrations } from './migrations.ts';
import type { MeterDatabase } from './schema.ts';

/** A transaction of the meter's store. */
export type MeterTransaction = Transaction<MeterDatabase>;

/** Where rows can be read: the store's `db`, or a transaction. */
export type MeterReader = Kysely<MeterDatabase>;

/** The meter's state, and the meters that share it. */
export type MeterStore = SharedStore<MeterDatabase>;

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
  const service = 'execution-meter';
  return await openSharedStore({ location, migrations, service, observer, onCommit });
}
