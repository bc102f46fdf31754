import { InternalError, InvalidRequestError, NotFoundError, PreconditionError } from '@writ/kernel';
import { DIMENSIONS, excess, isNothing, minus, NOTHING } from './amount.ts';
import { applyChange, type Balance, type Change, NO_CHANGE } from './balance.ts';
import {
  type Entry,
  type EntryKind,
  type Hold,
  heldAmount,
  isHolding,
  reservedEntry,
  spendingInFull,
} from './entry.ts';
import { type Breach, exceededByHold, exceededCap } from './exceeded-cap.ts';
import { addUsage, amountOf, NO_SPENDING, negateUsage, type Spending } from './spending.ts';

/** The part of the ledger that one event affects: a tab, its levels and one entry. */
export interface Ledger {
  readonly tab: 'open' | 'closed';
  /** Accounts of all levels of the entry. */
  readonly levels: readonly Balance[];
  /** Absent before the reservation or consumption that creates the entry. */
  readonly entry?: Entry;
}

/** Upper bound of an account, so that the sum of two accounts fits in 64 bits. */
export const ACCOUNT_LIMIT = 2n ** 62n;

/**
 * Events of a ledger. The caller decides when to apply `expire`: after the expiry time of an entry, or earlier if the
 * process of the call is dead or could not commit the outcome.
 */
export type LedgerEvent =
  | { readonly type: 'open' }
  | { readonly type: 'reserve'; readonly kind: EntryKind; readonly hold: Hold }
  | { readonly type: 'sent' }
  | { readonly type: 'settle'; readonly spent: Spending }
  | { readonly type: 'release' }
  | { readonly type: 'expire' }
  | { readonly type: 'consume'; readonly spent: Spending }
  | { readonly type: 'close' };

/** Result of an event. */
export interface Step {
  readonly ledger: Ledger;
  /** The change of every level. */
  readonly change: Change;
  /** The cap that rejected a reservation; the ledger is unchanged. */
  readonly refusal?: Breach;
  /** The first cap that the settled amount exceeds (EM-2). */
  readonly exceeded?: Breach;
}

/**
 * Applies an event to the ledger (EM-2, EM-3). A pure function: in one transaction, the caller reads the rows before
 * the call and writes them afterwards. A reservation fits every level or changes nothing; spending is always booked,
 * even above a cap, so that no cost is missing from the ledger.
 * @throws PreconditionError TAB_CLOSED, RESERVATION_SENT, RESERVATION_SETTLED,
 *   RESERVATION_RELEASED; NotFoundError RESERVATION_NOT_FOUND; InvalidRequestError AMOUNT_TOO_LARGE;
 *   InternalError ENTRY_EXISTS, ENTRY_ENDED
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
      return sent(ledger, requireEntry(ledger));
    case 'settle':
      return settle(ledger, requireEntry(ledger), event.spent);
    case 'release':
      return release(ledger, requireEntry(ledger));
    case 'expire':
      return expire(ledger, requireEntry(ledger));
    case 'consume':
      return consume(ledger, event.spent);
  }
}

function reserve(ledger: Ledger, kind: EntryKind, hold: Hold): Step {
  requireOpen(ledger);
  if (ledger.entry !== undefined) {
    throw new InternalError(
      'ENTRY_EXISTS',
      'Ledger entry already exists and cannot be reserved again.',
    );
  }
  const amount = heldAmount(hold);
  const refusal = exceededByHold(ledger.levels, amount);
  if (refusal !== undefined) return { ledger, change: NO_CHANGE, refusal };
  return step({ ...ledger, entry: reservedEntry(kind, hold) }, { ...NO_CHANGE, reserved: amount });
}

function sent(ledger: Ledger, entry: Entry): Step {
  if (isHolding(entry)) return step({ ...ledger, entry: { ...entry, state: 'sent' } }, NO_CHANGE);
  throw new InternalError('ENTRY_ENDED', 'Ledger entry has ended and cannot be marked as sent.');
}

/**
 * Books the spending of the first settlement, which also replaces an estimate that the expiry booked. Later settlements
 * change nothing.
 */
function settle(ledger: Ledger, entry: Entry, spent: Spending): Step {
  if (entry.state === 'released') {
    throw new PreconditionError(
      'RESERVATION_RELEASED',
      'The reservation was released and cannot be settled.',
    );
  }
  if (entry.state === 'settled' && !entry.byExpiry) return step(ledger, NO_CHANGE);
  return book(ledger, entry, spent, false);
}

function expire(ledger: Ledger, entry: Entry): Step {
  if (!isHolding(entry)) return step(ledger, NO_CHANGE);
  // The meter sends model calls itself and knows whether a call was sent. It does not know whether an amount held by
  // Reserve was spent.
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
        'The reservation was sent to a provider; it must be settled and cannot be released.',
      );
    case 'settled':
      throw new PreconditionError(
        'RESERVATION_SETTLED',
        'The reservation is settled and cannot be released.',
      );
    case 'reserved':
      return step(
        { ...ledger, entry: { ...entry, state: 'released' } },
        { ...NO_CHANGE, reserved: minus(NOTHING, heldAmount(entry.held)) },
      );
  }
}

function consume(ledger: Ledger, spent: Spending): Step {
  requireOpen(ledger);
  if (ledger.entry !== undefined) {
    throw new InternalError(
      'ENTRY_EXISTS',
      'Ledger entry already exists; spending cannot be booked again.',
    );
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
  if (levels.some(exceedsLimit)) {
    throw new InvalidRequestError(
      'AMOUNT_TOO_LARGE',
      'The amount would raise an account above the limit of 2^62.',
    );
  }
  const exceeded = exceededCap(levels);
  const after = { ...ledger, levels };
  return exceeded === undefined ? { ledger: after, change } : { ledger: after, change, exceeded };
}

function exceedsLimit({ used, reserved }: Balance): boolean {
  return DIMENSIONS.some((name) => used[name] > ACCOUNT_LIMIT || reserved[name] > ACCOUNT_LIMIT);
}

function requireOpen({ tab }: Ledger): void {
  if (tab === 'open') return;
  throw new PreconditionError('TAB_CLOSED', 'The tab is closed and accepts no calls.');
}

function requireEntry({ entry }: Ledger): Entry {
  if (entry !== undefined) return entry;
  throw new NotFoundError('RESERVATION_NOT_FOUND', 'The tab has no reservation for this call_id.');
}
