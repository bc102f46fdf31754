import { type AgentKey, AlreadyExistsError, PreconditionError } from '@writ/kernel';
import type { MeterContext } from '../../context.ts';
import { requestIdReused } from '../../domain/id-reused.ts';
import { type Caps, DIMENSIONS } from '../../domain/ledger/amount.ts';
import { type Balance, dayOf } from '../../domain/ledger/balance.ts';
import { forgetLevels, readLevels } from '../../store/balances.ts';
import { lastEvents } from '../../store/calls.ts';
import { isHeld } from '../../store/entries.ts';
import { forgetFailures, openFailures } from '../../store/failures.ts';
import type { LevelsKey } from '../../store/level-ids.ts';
import type { MeterTransaction } from '../../store/meter-store.ts';
import { openLevels } from '../../store/open-levels.ts';
import { requireTab } from '../../store/require-spendable.ts';
import type { SliceAccess } from '../../store/slices/slice-access.ts';
import { closeTab as close, findTab, insertTab, type StoredTab } from '../../store/tabs.ts';
import { bookingTransaction } from './booking-transaction.ts';
import { type TabView, viewTab } from './tab-view.ts';

/** A tab to open. */
export interface NewTab {
  readonly tab: StoredTab;
  readonly caps: Caps;
  /** Caps of the run, which the tab of the root agent sets; undefined leaves the caps of the run unchanged. */
  readonly runCaps: Caps | undefined;
  /** Upper bounds for the caps of the session; undefined leaves the caps of the session unchanged. */
  readonly sessionCaps: Caps | undefined;
}

/**
 * Opens the tab of an agent in its run, session and tenant (EM-1). The tab of the root agent sets the caps
 * of the run; afterwards only SetCaps changes them. Idempotent by request id.
 * @throws AlreadyExistsError TAB_EXISTS; InvalidRequestError REQUEST_ID_REUSED; PreconditionError
 *   RUN_BUDGET_ALREADY_SET
 */
export function openTab(context: MeterContext, opened: NewTab): Promise<TabView> {
  const { tab } = opened;
  const work = async (trx: MeterTransaction, access: SliceAccess): Promise<TabView> => {
    const key = { ...tab, day: dayOf(context.clock.now()) };
    const [known, before] = await Promise.all([
      findTab(trx, tab),
      readLevels(trx, key, context.catalog.tenantCaps(tab.tenant)),
    ]);
    if (known !== undefined) {
      requireSameRequest(known, tab);
      return await viewTab(context, trx, known);
    }
    await insertTab(trx, tab);
    const levels = await openLevelsOf({ trx, access }, opened, { key, before });
    const failures = openFailures(trx, tab);
    return await viewTab(context, trx, tab, { levels, failures });
  };
  return bookingTransaction(context, tab, work);
}

/** A tab after CloseTab, with the last events of its calls, encoded. */
export interface ClosedTab extends TabView {
  readonly events: Uint8Array[];
}

/**
 * Closes a tab. Idempotent. With `onlyIfSettled`, a tab stays open while part of its budget is reserved or one of its
 * calls is in flight. The check and the close are one transaction, so that no call can begin between them.
 * @throws NotFoundError TAB_NOT_FOUND
 */
export function closeTab(
  context: MeterContext,
  key: AgentKey,
  { onlyIfSettled }: { readonly onlyIfSettled: boolean },
): Promise<ClosedTab> {
  const { store, clock } = context;
  const work = async (trx: MeterTransaction): Promise<ClosedTab> => {
    const tab = await requireTab(trx, key);
    const [events, isBusy, balances] = await Promise.all([
      lastEvents(trx, tab),
      onlyIfSettled && isHeld(trx, tab),
      viewTab(context, trx, tab),
    ]);
    const view = { ...balances, events };
    if (tab.state === 'closed' || isBusy) return view;
    const at = clock.now();
    forgetFailures(trx, tab);
    forgetLevels(trx, { ...tab, day: dayOf(at) });
    return { ...view, tab: await close(trx, tab, at) };
  };
  return store.transaction(work, { run: key });
}

async function openLevelsOf(
  { trx, access }: { readonly trx: MeterTransaction; readonly access: SliceAccess },
  { caps, runCaps, sessionCaps }: NewTab,
  { key, before }: { readonly key: LevelsKey; readonly before: readonly Balance[] },
): Promise<Balance[]> {
  if (runCaps !== undefined)
    assertRunCaps(before.find(({ level }) => level === 'run')?.caps ?? {}, runCaps);
  const opened = { agent: caps, run: runCaps, session: sessionCaps };
  return await openLevels(trx, key, { opened, access, before });
}

function assertRunCaps(before: Caps, runCaps: Caps): void {
  const differs = DIMENSIONS.some((name) => before[name] !== runCaps[name]);
  if (!differs || DIMENSIONS.every((name) => before[name] === undefined)) return;
  throw new PreconditionError(
    'RUN_BUDGET_ALREADY_SET',
    'run_budget differs from the caps that the root tab set for the run; use SetCaps.',
    { field: 'run_budget' },
  );
}

function requireSameRequest(known: StoredTab, requested: StoredTab): void {
  if (known.requestId !== requested.requestId) {
    throw new AlreadyExistsError(
      'TAB_EXISTS',
      `Agent ${requested.instance} of run ${requested.runId} already has a tab.`,
      { run_id: requested.runId, agent_instance: requested.instance },
    );
  }
  if (known.requestDigest !== requested.requestDigest) throw requestIdReused();
}
