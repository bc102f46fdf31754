import type { TenantCaps } from '../domain/catalog/catalog.ts';
import { plus } from '../domain/ledger/amount.ts';
import { type Balance, type Breach, type Change, NO_CHANGE } from '../domain/ledger/balance.ts';
import { dayOf } from '../domain/ledger/calendar.ts';
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

/** Events for one entry of a tab. */
export interface Booking {
  readonly tab: StoredTab;
  readonly tenantCaps: TenantCaps;
  readonly id: EntryId;
  /**
   * In this order; when one is refused, those before it are not booked either. A function is given
   * the levels as they are, and may throw.
   */
  readonly events:
    | readonly LedgerEvent[]
    | ((levels: readonly Balance[]) => readonly LedgerEvent[]);
  readonly at: Date;
  /** What is changed beside the figures; the rest stays as it is, or empty. */
  readonly notes?: Partial<EntryNotes>;
  /** The entry as it was found in this transaction, `none` when it is not there; saves looking for it. */
  readonly known?: StoredEntry | 'none';
}

/** What was booked. */
export interface Booked {
  /** The accounts after it, or as they are when it was refused. */
  readonly levels: readonly Balance[];
  readonly entry: StoredEntry | undefined;
  /** The cap that refused it; then nothing is written. */
  readonly refusal?: Breach;
  /** A cap that what is settled exceeds, when these events settled something. */
  readonly exceeded?: Breach;
}

/**
 * Reads the rows that one booking touches, lets the reducer decide, and writes what it decided (EM-3).
 * The transaction makes it one.
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
  if (refusal !== undefined) return { levels, entry: before, refusal };
  const entry = ledger.entry && {
    ...EMPTY_NOTES,
    ...before,
    ...booking.notes,
    ...id,
    day,
    entry: ledger.entry,
  };
  if (entry !== undefined && ledger.entry !== before?.entry) {
    if (before === undefined) await insertEntry(trx, tab, entry, at);
    else await updateEntry(trx, tab, entry, at);
  }
  if (change !== NO_CHANGE) await addToLevels(trx, key, change, ledger.levels);
  const settled = change.used.tokens > 0n || change.used.cost > 0n || change.used.turns > 0n;
  return { levels: ledger.levels, entry, ...(settled && exceeded !== undefined && { exceeded }) };
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
