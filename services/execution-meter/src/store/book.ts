import type { TenantCaps } from '../domain/catalog/catalog.ts';
import { plus } from '../domain/ledger/amount.ts';
import { type Balance, type Change, dayOf, NO_CHANGE } from '../domain/ledger/balance.ts';
import type { Breach } from '../domain/ledger/exceeded-cap.ts';
import { type Ledger, type LedgerEvent, reduce, type Step } from '../domain/ledger/reduce.ts';
import { addUsage } from '../domain/ledger/spending.ts';
import { addToLevels, readAllSlices, readLevels } from './balances.ts';
import {
  type EntryId,
  type EntryNotes,
  findEntry,
  insertEntry,
  type StoredEntry,
  updateEntry,
} from './entries.ts';
import type { LevelsKey } from './level-ids.ts';
import type { MeterTransaction } from './meter-store.ts';
import { divideLevels, type ReadSlices, readEscrows } from './slices/divide-caps.ts';
import {
  type OwnSlice,
  readOwnSlice,
  requireWithinGrants,
  seenLevels,
} from './slices/own-slice.ts';
import { requireAllSlices, type SliceAccess } from './slices/slice-access.ts';
import type { StoredTab } from './tabs.ts';

/** Ledger events for one entry of a tab. */
export interface Booking {
  readonly tab: StoredTab;
  readonly tenantCaps: TenantCaps;
  readonly id: EntryId;
  /**
   * Applied in this order; if an event is refused, no event is booked. A function receives the current levels and can
   * throw.
   */
  readonly events:
    | readonly LedgerEvent[]
    | ((levels: readonly Balance[]) => readonly LedgerEvent[]);
  readonly at: Date;
  /** Attributes of the entry to change; omitted attributes remain unchanged. */
  readonly notes?: Partial<EntryNotes>;
  /** The entry that this transaction has already read, or `none` if it does not exist; avoids another query. */
  readonly known?: StoredEntry | 'none';
  readonly access: SliceAccess;
}

/** Result of a booking. */
export interface Booked {
  /** The accounts before the booking. */
  readonly before: readonly Balance[];
  /**
   * The accounts after the booking; unchanged if it was refused. If `isExact` is false, shared levels contain only
   * settled amounts; a shared level without caps is absent, and after a reservation all shared levels are absent.
   */
  readonly levels: readonly Balance[];
  /** Whether `levels` are complete. */
  readonly isExact: boolean;
  readonly entry: StoredEntry | undefined;
  /** The cap that refused the booking; nothing was written. */
  readonly refusal?: Breach;
  /** The first cap that the settled amount exceeds; set only if these events increase the settled amount. */
  readonly exceeded?: Breach;
}

/**
 * Reads the rows of one booking, applies the reducer and writes the result, in one transaction
 * (EM-3).
 * @throws the errors of `reduce`; AllSlicesRequired when the booking depends on other slices
 */
export async function book(trx: MeterTransaction, booking: Booking): Promise<Booked> {
  const { tab, id, at, known, access } = booking;
  const before = known === 'none' ? undefined : (known ?? (await findEntry(trx, tab, id)));
  const day = before?.day ?? dayOf(at);
  const key = { ...tab, day };
  const read = await readFor(trx, key, booking);
  const { levels } = read;
  const { ledger, change, refusal, exceeded } = fold(
    { tab: tab.state, levels, ...(before && { entry: before.entry }) },
    typeof booking.events === 'function' ? booking.events(levels) : booking.events,
  );
  const isExact = read.own === undefined;
  if (refusal !== undefined) {
    requireAllSlices(access, levels);
    return { before: levels, levels, entry: before, refusal, isExact };
  }
  const isChange = change !== NO_CHANGE;
  if (read.own !== undefined && isChange) requireWithinGrants(read.own, ledger.levels, change);
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
  const after = ledger.levels;
  const isSettled = change.used.tokens > 0n || change.used.cost > 0n || change.used.turns > 0n;
  const [seen] = await Promise.all([
    read.own && seenLevels(trx, key, access, { own: read.own, after, change }),
    isChanged ? writeEntry(trx, tab, entry, at) : undefined,
    isChange ? addToLevels(trx, key, { change, access, after }) : undefined,
  ]);
  if (read.slices !== undefined && isChange) {
    await divideLevels(trx, key, access, { ...read.slices, change, after });
  }
  const result = { before: seen?.before ?? levels, levels: seen?.after ?? after, entry, isExact };
  return { ...result, ...(isSettled && exceeded !== undefined && { exceeded }) };
}

/** The levels that a booking reads, depending on its access to slices. */
interface LevelsRead {
  readonly levels: readonly Balance[];
  /** Set when only the own slice is read, because other slices may change concurrently. */
  readonly own?: OwnSlice;
  /** Set when all slices are read. */
  readonly slices?: Pick<ReadSlices, 'rows' | 'escrows'>;
}

async function readFor(
  trx: MeterTransaction,
  key: LevelsKey,
  { access, tenantCaps }: Booking,
): Promise<LevelsRead> {
  switch (access.reach) {
    case 'only':
      return { levels: await readLevels(trx, key, tenantCaps) };
    case 'own': {
      const own = await readOwnSlice(trx, key, access, tenantCaps);
      return { levels: own.levels, own };
    }
    case 'all': {
      const [{ levels, rows }, escrows] = await Promise.all([
        readAllSlices(trx, key, tenantCaps),
        readEscrows(trx, key),
      ]);
      return { levels, slices: { rows, escrows } };
    }
  }
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
