import type { Amount } from './amount.ts';
import { NO_SPENDING, type Spending, type TokenUsage } from './spending.ts';

/** Kind of an entry: an attempt of a model call, a Reserve request, or consumed spending. */
export type EntryKind = 'call' | 'reserve' | 'consume';

/** State of an entry. `settled` and `released` are terminal. */
export type EntryState = 'reserved' | 'sent' | 'settled' | 'released';

/** One ledger entry: a hold and its settlement (EM-3). */
export interface Entry {
  readonly kind: EntryKind;
  readonly state: EntryState;
  readonly held: Hold;
  /** Settled spending; zero until settlement. */
  readonly spent: Spending;
  /** Whether the settlement exceeded the hold. */
  readonly exceeded: boolean;
  /** Whether the event `expire` settled the entry with its full hold; a later settlement replaces this estimate. */
  readonly byExpiry: boolean;
}

/** Amount that a reservation holds on every level. */
export interface Hold {
  /** Held tokens, settled in full on expiry. */
  readonly usage: TokenUsage;
  /** Nano-USD. */
  readonly cost: bigint;
  readonly turns: bigint;
}

/** Converts a hold to an amount in the dimensions of caps. */
export function heldAmount({ usage, cost, turns }: Hold): Amount {
  return { tokens: usage.input + usage.output, cost, turns };
}

/** Returns a new reservation. */
export function reservedEntry(kind: EntryKind, held: Hold): Entry {
  return { kind, state: 'reserved', held, spent: NO_SPENDING, exceeded: false, byExpiry: false };
}

/** Whether the entry holds part of the budget. */
export function isHolding({ state }: Entry): boolean {
  return state === 'reserved' || state === 'sent';
}

/** Returns the full hold as estimated spending, for an entry without reported usage (EM-3). */
export function spendingInFull({ held }: Entry): Spending {
  return { ...held, estimated: true, failed: false };
}
