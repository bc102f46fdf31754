import { openStore, type Store, type StoreLocation } from '@writ/store';
import type { Kysely, Transaction } from 'kysely';
import { gatewayMigrations } from './migrations.ts';
import type { GatewayDatabase } from './schema.ts';

/** The tool gateway's state. */
export type GatewayStore = Store<GatewayDatabase>;

/** A transaction of the tool gateway's store. */
export type GatewayTransaction = Transaction<GatewayDatabase>;

/** Where rows can be read: the store's `db`, or a transaction. */
export type GatewayReader = Kysely<GatewayDatabase>;

/**
 * Opens the tool gateway's store.
 * @throws what openStore throws
 */
export function openGatewayStore(location: StoreLocation): Promise<GatewayStore> {
  return openStore<GatewayDatabase>({
    location,
    migrations: gatewayMigrations,
    service: 'tool-gateway',
  });
}
