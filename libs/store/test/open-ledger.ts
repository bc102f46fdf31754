import { isPostgresAvailable, postgresLocation } from '@writ/testing/postgres';
import { onTestFinished } from 'vitest';
import { openStore, type Store, type StoreLimits, type StoreLocation } from '../src/index.ts';
import { type LedgerDatabase, ledgerMigrations } from './ledger.ts';
import { tempFolder } from './temp-folder.ts';

/** An open ledger. */
export interface OpenLedger {
  readonly store: Store<LedgerDatabase>;
  readonly location: StoreLocation;
}

/** The databases of a ledger. */
export type Place = 'a file' | 'memory' | 'PostgreSQL';

/** The databases available on this machine, which must behave alike. */
export const PLACES: readonly Place[] = [
  'a file',
  'memory',
  ...(isPostgresAvailable() ? (['PostgreSQL'] as const) : []),
];

/** Opens an empty ledger, by default in a file, and closes it after the test. */
export async function openLedger(
  place: Place = 'a file',
  limits: Partial<StoreLimits> = {},
): Promise<OpenLedger> {
  const location = await emptyLocation(place);
  return await openLedgerAt(location, limits);
}

/** Opens the ledger at `location` like another process, and closes it after the test. */
export async function openLedgerAt(
  location: StoreLocation,
  limits: Partial<StoreLimits> = {},
): Promise<OpenLedger> {
  const migrations = ledgerMigrations;
  const store = await openStore<LedgerDatabase>({
    location,
    migrations,
    service: 'ledger',
    limits,
  });
  onTestFinished(() => store.close());
  return { store, location };
}

/** An empty database, which is deleted after the test. */
export async function emptyLocation(place: Place): Promise<StoreLocation> {
  if (place === 'PostgreSQL') return await postgresLocation();
  const file = place === 'a file' ? tempFolder().file('ledger.db') : ':memory:';
  return { dialect: 'sqlite', file };
}

/** The ids of all entries, sorted. */
export async function entryIds(store: Store<LedgerDatabase>): Promise<string[]> {
  const rows = await store.db.selectFrom('entry').select('id').orderBy('id').execute();
  return rows.map(({ id }) => id);
}
