import {
  type CommitObserver,
  initialMigration,
  openSharedStore,
  type SharedStore,
  type StoreLocation,
} from '@writ/store';
import type { Kysely, Transaction } from 'kysely';
import { type MeterDatabase, TABLES } from './schema.ts';

/** A transaction of the meter's store. */
export type MeterTransaction = Transaction<MeterDatabase>;

/** A transaction of the meter's store, and the time that it uses for all changes. */
export interface MeterTx {
  readonly trx: MeterTransaction;
  readonly at: Date;
}

/** Reads rows: the `db` of the store, or a transaction. */
export type MeterReader = Kysely<MeterDatabase>;

/** The store of the meter, shared by its replicas. */
export type MeterStore = SharedStore<MeterDatabase>;

/**
 * Opens the store of the meter.
 * @param onCommit called for every durable transaction; must not throw
 * @throws the errors of openStore
 */
export async function openMeterStore(
  location: StoreLocation,
  onCommit: (trx: MeterTransaction) => void,
  observer?: CommitObserver,
): Promise<MeterStore> {
  return await openSharedStore<MeterDatabase>({
    location,
    migrations: initialMigration(TABLES),
    service: 'execution-meter',
    observer,
    onCommit,
  });
}
