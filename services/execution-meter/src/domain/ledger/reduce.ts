import { InternalError, InvalidRequestError, NotFoundError, PreconditionError } from '@writ/kernel';
import { DIMENSIONS, excess, isNothing, minus, NOTHING } from './amount.ts';
import {
  applyChange,
  type Balance,
  type Breach,
  type Change,
  exceededCap,
  NO_CHANGE,
  refusingCap,
} from './balance.ts';
import {
  type Entry,
  type EntryKind,
  type Hold,
  heldAmount,
  isHolding,
  reservedEntry,
  spendingInFull,
} from './entry.ts';
import { addUsage, amountOf, NO_SPENDING, negateUsage, type Spending } from './spending.ts';

/** The part of the books that one event touches: a tab, its levels and one entry. */
export interface Ledger {
  readonly tab: 'open' | 'closed';
  /** The accounts of every level that the entry is booked to. */
  readonly levels: readonly Balance[];
  /** Absent before it is reserved or consumed. */
  readonly entry?: Entry;
}

/** Far below where 64 bits end, so that no sum of two figures gets there. */
const LARGEST = 2n ** 62n;

/** What can happen to a ledger. The clock is the caller's: an `expire` says that it is time. */
export type LedgerEvent =
  | { readonly type: 'open' }
  | { readonly type: 'reserve'; readonly kind: EntryKind; readonly hold: Hold }
  | { readonly type: 'sent' }
  | { readonly type: 'settle'; readonly spent: Spending }
  | { readonly type: 'release' }
  | { readonly type: 'expire' }
  | { readonly type: 'consume'; readonly spent: Spending }
  | { readonly type: 'close' };

/** What an event did. */
export interface Step {
  readonly ledger: Ledger;
  /** What was added to each level, the same for all of them. */
  readonly change: Change;
  /** The cap that refused a reservation; then nothing changed. */
  readonly refusal?: Breach;
  /** The first cap that is exceeded by what is now settled (EM-2). */
  readonly exceeded?: Breach;
}

/**
 * Decides what an event does to the books (EM-2, EM-3). Pure: rows are read before and written after,
 * in one transaction. A reservation fits every level or changes nothing; whatever was spent is booked,
 * caps or not, for money that is gone must not be lost from the ledger.
 * @throws PreconditionError TAB_CLOSED, RESERVATION_SENT, RESERVATION_SETTLED, RESERVATION_RELEASED;
 *   NotFoundError RESERVATION_NOT_FOUND; InvalidRequestError AMOUNT_TOO_LARGE
 */
export function reduce(ledger: Ledger, event: LedgerEvent): Step {
  switch (event.type) {
    case 'open':
      return step({ ...ledger, tab: 'open' }, NO_CHANGE);
    case 'close':
      return step({ ...ledger, tab: 'closed' }, NO_CHANGE);
    case 'reserve':
      return reserve(ledger, event.kind, event.hold);
    case 'sent':
      return sent(ledger, held(ledger));
    case 'settle':
      return settle(ledger, held(ledger), event.spent);
    case 'release':
      return release(ledger, held(ledger));
    case 'expire':
      return expire(ledger, held(ledger));
    case 'consume':
      return consume(ledger, event.spent);
  }
}

function reserve(ledger: Ledger, kind: EntryKind, hold: Hold): Step {
  refuseClosed(ledger);
  if (ledger.entry !== undefined) {
    throw new InternalError('ENTRY_EXISTS', 'A ledger entry was to be reserved a second time.');
  }
  const amount = heldAmount(hold);
  const refusal = refusingCap(ledger.levels, amount);
  if (refusal !== undefined) return { ledger, change: NO_CHANGE, refusal };
  return step({ ...ledger, entry: reservedEntry(kind, hold) }, { ...NO_CHANGE, reserved: amount });
}

function sent(ledger: Ledger, entry: Entry): Step {
  if (isHolding(entry)) return step({ ...ledger, entry: { ...entry, state: 'sent' } }, NO_CHANGE);
  throw new InternalError('ENTRY_ENDED', 'A ledger entry was to be sent after it had ended.');
}

/** Books what was used; the first word counts, except that it replaces an estimate made by expiry. */
function settle(ledger: Ledger, entry: Entry, spent: Spending): Step {
  if (entry.state === 'released') {
    throw new PreconditionError(
      'RESERVATION_RELEASED',
      'The reservation was released, so there is nothing to settle.',
    );
  }
  if (entry.state === 'settled' && !entry.byExpiry) return step(ledger, NO_CHANGE);
  return book(ledger, entry, spent, false);
}

function expire(ledger: Ledger, entry: Entry): Step {
  if (!isHolding(entry)) return step(ledger, NO_CHANGE);
  // The meter itself sends model calls, so it knows; what a bare Reserve was used for, nobody knows.
  if (entry.kind === 'call' && entry.state === 'reserved') return release(ledger, entry);
  return book(ledger, entry, spendingInFull(entry), true);
}

function book(ledger: Ledger, entry: Entry, spent: Spending, byExpiry: boolean): Step {
  const held = heldAmount(entry.held);
  const over = excess(amountOf(spent), held);
  const before = entry.spent;
  const change: Change = {
    ...spendingChange(spent, before),
    reserved: isHolding(entry) ? minus(NOTHING, held) : NOTHING,
    debt: over,
  };
  const exceeded = !isNothing(over);
  return step(
    { ...ledger, entry: { ...entry, state: 'settled', spent, exceeded, byExpiry } },
    change,
  );
}

function release(ledger: Ledger, entry: Entry): Step {
  switch (entry.state) {
    case 'released':
      return step(ledger, NO_CHANGE);
    case 'sent':
      throw new PreconditionError(
        'RESERVATION_SENT',
        'A provider was asked under this reservation, so it is settled, not released.',
      );
    case 'settled':
      throw new PreconditionError(
        'RESERVATION_SETTLED',
        'The reservation was settled, so there is nothing to release.',
      );
    case 'reserved':
      return step(
        { ...ledger, entry: { ...entry, state: 'released' } },
        { ...NO_CHANGE, reserved: minus(NOTHING, heldAmount(entry.held)) },
      );
  }
}

function consume(ledger: Ledger, spent: Spending): Step {
  refuseClosed(ledger);
  if (ledger.entry !== undefined) {
    throw new InternalError('ENTRY_EXISTS', 'Spending was to be booked a second time.');
  }
  const hold: Hold = { usage: NO_SPENDING.usage, cost: 0n, turns: 0n };
  const entry: Entry = { ...reservedEntry('consume', hold), state: 'settled', spent };
  return step({ ...ledger, entry }, spendingChange(spent, NO_SPENDING));
}

function spendingChange(spent: Spending, before: Spending): Change {
  return {
    ...NO_CHANGE,
    used: minus(amountOf(spent), amountOf(before)),
    usage: addUsage(spent.usage, negateUsage(before.usage)),
    estimatedTurns: estimatedTurns(spent) - estimatedTurns(before),
    failedCalls: failedCalls(spent) - failedCalls(before),
  };
}

function estimatedTurns({ estimated, turns }: Spending): bigint {
  return estimated ? turns : 0n;
}

function failedCalls({ failed }: Spending): bigint {
  return failed ? 1n : 0n;
}

function step(ledger: Ledger, change: Change): Step {
  if (change === NO_CHANGE) return { ledger, change };
  const levels = ledger.levels.map((balance) => applyChange(balance, change));
  if (levels.some(isAbsurd)) {
    throw new InvalidRequestError(
      'AMOUNT_TOO_LARGE',
      'The amount would take an account beyond 2^62, which no budget can mean.',
    );
  }
  const exceeded = exceededCap(levels);
  const after = { ...ledger, levels };
  return exceeded === undefined ? { ledger: after, change } : { ledger: after, change, exceeded };
}

function isAbsurd({ used, reserved }: Balance): boolean {
  return DIMENSIONS.some((name) => used[name] > LARGEST || reserved[name] > LARGEST);
}

function refuseClosed({ tab }: Ledger): void {
  if (tab === 'open') return;
  throw new PreconditionError('TAB_CLOSED', 'The tab is closed, so it takes no calls.');
}

function held({ entry }: Ledger): Entry {
  if (entry !== undefined) return entry;
  throw new NotFoundError('RESERVATION_NOT_FOUND', 'The tab has no reservation for this call_id.');
}
