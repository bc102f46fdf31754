import type { AgentKey } from '@writ/kernel';
import type { MeterContext } from '../../context.ts';
import type { Balance } from '../../domain/ledger/balance.ts';
import { dayOf } from '../../domain/ledger/balance.ts';
import { readLevels, readScopeLevels } from '../../store/balances.ts';
import { type FailureCount, failuresOf } from '../../store/failures.ts';
import type { MeterReader } from '../../store/meter-store.ts';
import { requireTab } from '../../store/require-spendable.ts';
import type { StoredTab } from '../../store/tabs.ts';

/** A tab with its current balances and failures. */
export interface TabView {
  readonly tab: StoredTab;
  readonly levels: readonly Balance[];
  readonly failures: readonly FailureCount[];
}

/**
 * Reads the current balances and failures of a tab.
 * @param known levels and failures that this transaction has already read
 */
export async function viewTab(
  { clock, catalog }: Pick<MeterContext, 'clock' | 'catalog'>,
  db: MeterReader,
  tab: StoredTab,
  known: Partial<Pick<TabView, 'levels' | 'failures'>> = {},
): Promise<TabView> {
  const key = { ...tab, day: dayOf(clock.now()) };
  const [levels, failures] = await Promise.all([
    known.levels ?? readLevels(db, key, catalog.tenantCaps(tab.tenant)),
    known.failures ?? failuresOf(db, tab),
  ]);
  return { tab, levels, failures };
}

/**
 * Reads a tab.
 * @throws NotFoundError TAB_NOT_FOUND
 */
export async function readTab(context: MeterContext, key: AgentKey): Promise<TabView> {
  const { db } = context.store;
  return await viewTab(context, db, await requireTab(db, key));
}

/** Reads the balances of a session, unless `sessionId` is empty, and of a tenant's current day and month. */
export async function readBalances(
  { store, clock, catalog }: Pick<MeterContext, 'store' | 'clock' | 'catalog'>,
  tenant: string,
  sessionId: string,
): Promise<readonly Balance[]> {
  const key = { tenant, sessionId: sessionId || undefined, day: dayOf(clock.now()) };
  return await readScopeLevels(store.db, key, catalog.tenantCaps(tenant));
}
