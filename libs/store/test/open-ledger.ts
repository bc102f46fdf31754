import { onTestFinished } from 'vitest';
import { openStore, type Store, type StoreLimits } from '../src/index.ts';
import { type LedgerDatabase, ledgerMigrations } from './ledger.ts';
import { tempFolder } from './temp-folder.ts';

/** An open ledger. */
export interface OpenLedger {
  readonly store: Store<LedgerDatabase>;
  readonly file: string;
}

/** The two kinds of SQLite store, which must behave alike. */
export const PLACES = ['file', 'memory'] as const;

/** Opens an empty ledger in a file of its own, or in memory, and closes it with the test. */
export async function openLedger(
  place: (typeof PLACES)[number] = 'file',
  limits: Partial<StoreLimits> = {},
): Promise<OpenLedger> {
  const file = place === 'file' ? tempFolder().file('ledger.db') : ':memory:';
  const store = await openStore<LedgerDatabase>({
    location: { dialect: 'sqlite', file },
    migrations: ledgerMigrations,
    service: 'ledger',
    limits,
  });
  onTestFinished(() => store.close());
  return { store, file };
}

/** The ids of all entries, sorted. */
export async function entryIds(store: Store<LedgerDatabase>): Promise<string[]> {
  const rows = await store.db.selectFrom('entry').select('id').orderBy('id').execute();
  return rows.map(({ id }) => id);
}
