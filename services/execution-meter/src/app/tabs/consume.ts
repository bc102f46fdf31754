import type { AgentKey } from '@writ/kernel';
import type { MeterContext } from '../../context.ts';
import { requestIdReused } from '../../domain/id-reused.ts';
import { dayOf } from '../../domain/ledger/balance.ts';
import { breachError } from '../../domain/ledger/breach-error.ts';
import { type Breach, exceededCap } from '../../domain/ledger/exceeded-cap.ts';
import type { Spending } from '../../domain/ledger/spending.ts';
import { readLevels } from '../../store/balances.ts';
import { book } from '../../store/book.ts';
import { type EntryId, findEntry } from '../../store/entries.ts';
import type { MeterTransaction } from '../../store/meter-store.ts';
import { requireTab } from '../../store/require-spendable.ts';
import type { SliceAccess } from '../../store/slices/slice-access.ts';
import { bookingTransaction } from './booking-transaction.ts';
import { type TabView, viewTab } from './tab-view.ts';

/** External spending to book. */
export interface Consumption {
  readonly key: AgentKey;
  readonly requestId: string;
  readonly requestDigest: string;
  readonly spent: Spending;
  readonly traceparent: string;
}

/**
 * Books external spending, then checks the caps: tokens, cost, turns (EM-2). Idempotent by request id.
 * @throws BudgetExhaustedError when a cap is exceeded, after the booking is committed; NotFoundError
 *   TAB_NOT_FOUND; InvalidRequestError REQUEST_ID_REUSED; PreconditionError TAB_CLOSED
 */
export async function consume(context: MeterContext, consumption: Consumption): Promise<TabView> {
  const { view, breach } = await bookingTransaction(context, consumption.key, (trx, access) =>
    bookConsumption(context, { trx, access }, consumption),
  );
  if (breach !== undefined) throw breachError(breach);
  return view;
}

async function bookConsumption(
  context: MeterContext,
  { trx, access }: { readonly trx: MeterTransaction; readonly access: SliceAccess },
  { key, requestId, requestDigest, spent, traceparent }: Consumption,
): Promise<{ readonly view: TabView; readonly breach: Breach | undefined }> {
  const { clock, catalog, events } = context;
  const at = clock.now();
  const tab = await requireTab(trx, key);
  const tenantCaps = catalog.tenantCaps(key.tenant);
  const id: EntryId = { kind: 'consume', callId: requestId, attempt: 0 };
  const known = await findEntry(trx, key, id);
  if (known !== undefined) {
    if (known.requestDigest !== requestDigest) throw requestIdReused();
    const levels = await readLevels(trx, { ...tab, day: dayOf(at) }, tenantCaps);
    return { view: await viewTab(context, trx, tab), breach: exceededCap(levels) };
  }
  const booked = await book(trx, {
    tab,
    tenantCaps,
    access,
    id,
    known: 'none',
    events: [{ type: 'consume', spent }],
    notes: { requestDigest },
    at,
  });
  const scope = { tab, callId: requestId, step: 0, model: '', attempt: 0, traceparent };
  await events.budgetThresholds({ trx, at }, scope, booked);
  const breach = exceededCap(booked.levels);
  if (breach !== undefined) {
    await events.budgetExhausted({ trx, at }, scope, breach, 'consumed');
  }
  return { view: await viewTab(context, trx, tab), breach };
}
