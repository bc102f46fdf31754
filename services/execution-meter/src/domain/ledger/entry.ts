import type { Amount } from './amount.ts';
import { NO_SPENDING, type Spending, type TokenUsage } from './spending.ts';

/** What an entry is for: an attempt of a model call, a bare Reserve, or spending booked as it is. */
export type EntryKind = 'call' | 'reserve' | 'consume';

/** Where an entry stands. `settled` and `released` are terminal. */
export type EntryState = 'reserved' | 'sent' | 'settled' | 'released';

/** One line of the ledger: what was held, and what became of it (EM-3). */
export interface Entry {
  readonly kind: EntryKind;
  readonly state: EntryState;
  readonly held: Hold;
  /** What was booked; nothing until it is settled. */
  readonly spent: Spending;
  /** It settled above what it held. */
  readonly exceeded: boolean;
  /** Nobody settled it: it was settled in full by expiry. A real figure may still replace that. */
  readonly byExpiry: boolean;
}

/** What a reservation holds on every level. */
export interface Hold {
  /** The tokens held, as they are booked should nobody ever say what was used. */
  readonly usage: TokenUsage;
  /** Nano-USD. */
  readonly cost: bigint;
  readonly turns: bigint;
}

/** A hold as caps see it. */
export function heldAmount({ usage, cost, turns }: Hold): Amount {
  return { tokens: usage.input + usage.output, cost, turns };
}

/** A fresh reservation. */
export function reservedEntry(kind: EntryKind, held: Hold): Entry {
  return { kind, state: 'reserved', held, spent: NO_SPENDING, exceeded: false, byExpiry: false };
}

/** Whether the entry holds part of the budget. */
export function isHolding({ state }: Entry): boolean {
  return state === 'reserved' || state === 'sent';
}

/** What is booked when nobody says what was used: all that was held, as an estimate (EM-3). */
export function spendingInFull({ held }: Entry): Spending {
  return { ...held, estimated: true, failed: false };
}
