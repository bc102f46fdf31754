import type { TenantCaps } from '../domain/catalog/catalog.ts';
import { plus } from '../domain/ledger/amount.ts';
import {
  type Balance,
  type Breach,
  type Change,
  dayOf,
  NO_CHANGE,
} from '../domain/ledger/balance.ts';
import { type Ledger, type LedgerEvent, reduce, type Step } from '../domain/ledger/reduce.ts';
import { addUsage } from '../domain/ledger/spending.ts';
import { addToLevels, readLevels } from './balances.ts';
import {
  type EntryId,
  type EntryNotes,
  findEntry,
  insertEntry,
  type StoredEntry,
  updateEntry,
} from './entries.ts';
import type { MeterTransaction } from './meter-store.ts';
import type { StoredTab } from './tabs.ts';

/** Ledger events for one entry of a tab. */
export interface Booking {
  readonly tab: StoredTab;
  readonly tenantCaps: TenantCaps;
  readonly id: EntryId;
  /**
   * Applied in this order; when one is refused, none is booked. A function receives the current
   * levels and can throw.
   */
  readonly events:
    | readonly LedgerEvent[]
    | ((levels: readonly Balance[]) => readonly LedgerEvent[]);
  readonly at: Date;
  /** Changed attributes of the entry; others remain unchanged. */
  readonly notes?: Partial<EntryNotes>;
  /** The entry as read in this transaction, `none` when it does not exist; saves the query. */
  readonly known?: StoredEntry | 'none';
}

/** Result of a booking. */
export interface Booked {
  /** The accounts before the booking. */
  readonly before: readonly Balance[];
  /** The accounts after the booking, or unchanged when it was refused. */
  readonly levels: readonly Balance[];
  readonly entry: StoredEntry | undefined;
  /** The cap that refused the booking; nothing was written. */
  readonly refusal?: Breach;
  /** The cap that a settlement of these events exceeds. */
  readonly exceeded?: Breach;
}

/**
 * Reads the rows of one booking, applies the reducer and writes the result, in one transaction
 * (EM-3).
 * @throws what `reduce` throws
 */
export async function book(trx: MeterTransaction, booking: Booking): Promise<Booked> {
  const { tab, id, at, known } = booking;
  const before = known === 'none' ? undefined : (known ?? (await findEntry(trx, tab, id)));
  const day = before?.day ?? dayOf(at);
  const key = { ...tab, day };
  const levels = await readLevels(trx, key, booking.tenantCaps);
  const { ledger, change, refusal, exceeded } = fold(
    { tab: tab.state, levels, ...(before && { entry: before.entry }) },
    typeof booking.events === 'function' ? booking.events(levels) : booking.events,
  );
  if (refusal !== undefined) return { before: levels, levels, entry: before, refusal };
  const entry = ledger.entry && {
    ...EMPTY_NOTES,
    ...before,
    ...booking.notes,
    ...id,
    day,
    entry: ledger.entry,
  };
  const isChanged = entry !== undefined && ledger.entry !== before?.entry;
  const writeEntry = before === undefined ? insertEntry : updateEntry;
  await Promise.all([
    isChanged ? writeEntry(trx, tab, entry, at) : undefined,
    change === NO_CHANGE ? undefined : addToLevels(trx, key, change, ledger.levels),
  ]);
  const settled = change.used.tokens > 0n || change.used.cost > 0n || change.used.turns > 0n;
  const result = { before: levels, levels: ledger.levels, entry };
  return { ...result, ...(settled && exceeded !== undefined && { exceeded }) };
}

const EMPTY_NOTES: EntryNotes = {
  model: '',
  requestDigest: '',
  settleDigest: undefined,
  expiresAt: undefined,
};

function fold(ledger: Ledger, events: readonly LedgerEvent[]): Step {
  let step: Step = { ledger, change: NO_CHANGE };
  for (const event of events) {
    const next = reduce(step.ledger, event);
    if (next.refusal !== undefined) return next;
    step = { ...next, change: addChanges(step.change, next.change) };
  }
  return step;
}

function addChanges(a: Change, b: Change): Change {
  if (a === NO_CHANGE) return b;
  if (b === NO_CHANGE) return a;
  return {
    used: plus(a.used, b.used),
    reserved: plus(a.reserved, b.reserved),
    debt: plus(a.debt, b.debt),
    usage: addUsage(a.usage, b.usage),
    estimatedTurns: a.estimatedTurns + b.estimatedTurns,
    failedCalls: a.failedCalls + b.failedCalls,
  };
}
