import { freezesOver } from '@writ/freeze';
import { type AgentKey, omitUndefined } from '@writ/kernel';
import type { MeterContext } from '../../context.ts';
import { callIdReused } from '../../domain/id-reused.ts';
import { dayOf, remainingBudget } from '../../domain/ledger/balance.ts';
import { breachError } from '../../domain/ledger/breach-error.ts';
import type { Hold } from '../../domain/ledger/entry.ts';
import type { Spending } from '../../domain/ledger/spending.ts';
import { type Booked, book } from '../../store/book.ts';
import { type EntryId, findEntry, type StoredEntry } from '../../store/entries.ts';
import type { MeterTransaction } from '../../store/meter-store.ts';
import { requireSpendable, requireTab } from '../../store/require-spendable.ts';
import type { SliceAccess } from '../../store/slices/slice-access.ts';
import { bookingTransaction } from './booking-transaction.ts';
import { type TabView, viewTab } from './tab-view.ts';

/** A request about one reservation of an agent. */
interface ReservationRequest {
  readonly key: AgentKey;
  readonly callId: string;
  readonly requestDigest: string;
  readonly traceparent: string;
}

/** A reservation to make. */
export interface NewReservation extends ReservationRequest {
  readonly hold: Hold;
  readonly ttlMs: number;
}

/** A reservation to settle. */
export interface Settlement extends ReservationRequest {
  readonly spent: Spending;
  /** Catalog alias; empty when unknown. */
  readonly model: string;
}

/**
 * Reserves budget on every level (EM-3). Idempotent by call id.
 * @throws BudgetExhaustedError with the first exceeded cap and the amounts that would fit; NotFoundError
 *   TAB_NOT_FOUND; PreconditionError HALTED, FROZEN, TAB_CLOSED; DeadlineError DEADLINE_EXCEEDED;
 *   InvalidRequestError CALL_ID_REUSED
 */
export async function reserve(
  context: MeterContext,
  reservation: NewReservation,
): Promise<StoredEntry | undefined> {
  const { entry, refusal, levels } = await bookingTransaction(
    context,
    reservation.key,
    (trx, access) => bookReservation(context, { trx, access }, reservation),
  );
  if (refusal === undefined) return entry;
  const remaining = remainingBudget(levels);
  throw breachError(refusal, {
    call_id: reservation.callId,
    ...omitUndefined({
      fits_tokens: remaining.tokens?.toString(),
      fits_cost_nano_usd: remaining.cost?.toString(),
      fits_turns: remaining.turns?.toString(),
    }),
  });
}

async function bookReservation(
  { clock, catalog, events }: MeterContext,
  { trx, access }: { readonly trx: MeterTransaction; readonly access: SliceAccess },
  { key, callId, requestDigest, traceparent, hold, ttlMs }: NewReservation,
): Promise<Booked> {
  const at = clock.now();
  const id = reservationId(callId);
  const [tab, known, freezes] = await Promise.all([
    requireTab(trx, key),
    findEntry(trx, key, id),
    freezesOver(trx, key),
  ]);
  if (known !== undefined) {
    if (known.requestDigest !== requestDigest) throw callIdReused(callId);
    return { entry: known, before: [], levels: [], isExact: false };
  }
  requireSpendable(tab, freezes, at);
  const booked = await book(trx, {
    tab,
    tenantCaps: catalog.tenantCaps(key.tenant),
    access,
    id,
    known: 'none',
    events: [{ type: 'reserve', kind: 'reserve', hold }],
    notes: { requestDigest, expiresAt: new Date(at.getTime() + ttlMs) },
    at,
  });
  if (booked.refusal !== undefined) {
    const scope = { tab, callId, step: 0, model: '', attempt: 0, traceparent };
    await events.budgetExhausted({ trx, at }, scope, booked.refusal, 'refused');
  }
  return booked;
}

/** A settled reservation and its tab. */
interface Settled {
  readonly entry: StoredEntry | undefined;
  readonly view: TabView;
}

/**
 * Settles a reservation, even on a closed tab; usage above the reservation becomes debt (EM-3).
 * Idempotent by call id.
 * @throws NotFoundError TAB_NOT_FOUND, RESERVATION_NOT_FOUND; PreconditionError RESERVATION_RELEASED;
 *   InvalidRequestError CALL_ID_REUSED
 */
export function settle(
  context: MeterContext,
  { key, callId, requestDigest, traceparent, spent, model }: Settlement,
): Promise<Settled> {
  const { clock, catalog, events } = context;
  const work = async (trx: MeterTransaction, access: SliceAccess): Promise<Settled> => {
    const at = clock.now();
    const id = reservationId(callId);
    const [tab, before] = await Promise.all([requireTab(trx, key), findEntry(trx, key, id)]);
    const settledBy = before?.settleDigest;
    if (settledBy !== undefined && settledBy !== requestDigest) throw callIdReused(callId);
    const booked = await book(trx, {
      tab,
      known: before ?? 'none',
      access,
      tenantCaps: catalog.tenantCaps(key.tenant),
      id,
      events: [{ type: 'settle', spent }],
      notes: { settleDigest: requestDigest, ...(model !== '' && { model }) },
      at,
    });
    const { entry, exceeded, levels, isExact } = booked;
    const scope = { tab, callId, step: 0, model, attempt: 0, traceparent };
    await events.budgetThresholds({ trx, at }, scope, booked);
    if (exceeded !== undefined) {
      await events.budgetExhausted({ trx, at }, scope, exceeded, 'settled');
    }
    // A settlement after midnight is booked to the day of the reservation, but the tab shows the current day, so its
    // balances are read again.
    const known = isExact && entry?.day === dayOf(at) ? { levels } : {};
    return { entry, view: await viewTab(context, trx, tab, known) };
  };
  return bookingTransaction(context, key, work);
}

/**
 * Releases a reservation on every level (EM-3). Idempotent.
 * @throws NotFoundError TAB_NOT_FOUND, RESERVATION_NOT_FOUND; PreconditionError RESERVATION_SENT,
 *   RESERVATION_SETTLED
 */
export async function release(
  context: MeterContext,
  key: AgentKey,
  callId: string,
): Promise<StoredEntry | undefined> {
  const { clock, catalog } = context;
  const { entry } = await bookingTransaction(context, key, async (trx, access) =>
    book(trx, {
      tab: await requireTab(trx, key),
      tenantCaps: catalog.tenantCaps(key.tenant),
      access,
      id: reservationId(callId),
      events: [{ type: 'release' }],
      at: clock.now(),
    }),
  );
  return entry;
}

function reservationId(callId: string): EntryId {
  return { kind: 'reserve', callId, attempt: 0 };
}
