import { type Amount, type Caps, DIMENSIONS, type Dimension, NOTHING } from './amount.ts';

/**
 * One slice of a level: what it has booked, and its grant, the amount up to which it may book without reading other
 * slices. A grant here is a part of a cap, not a slot grant.
 */
export interface Slice {
  readonly index: number;
  /** Settled and reserved amount. */
  readonly booked: Amount;
  readonly granted: Amount;
}

/** A level whose cap is divided among its slices. */
export interface DividedLevel {
  readonly caps: Caps;
  /** Percentages of a cap at which a threshold event is published, in ascending order. */
  readonly percents: readonly number[];
  /** Settled amount of all slices. */
  readonly used: Amount;
  /** All slices with bookings or grants. */
  readonly slices: readonly Slice[];
}

/** The slice that asks for a larger grant. */
export interface Demand {
  readonly index: number;
  /**
   * Amount that the booking of this transaction reserved, so that another one of this size fits; after a settlement or
   * release it is negative, and then treated as 1.
   */
  readonly wanted: Amount;
}

/** Grants of all slices. */
export interface Division {
  /** In the order of the slices. */
  readonly grants: readonly Amount[];
  /** Whether settlements within the grants can reach a threshold, so that each must read all slices. */
  readonly isWatched: boolean;
}

/** When less than the cap divided by this remains below the next threshold, settlements are watched. */
const WATCHED_PART = 16n;

/** Returns what grants depend on besides bookings; grants under other terms are void. Empty for a level without caps. */
export function termsOf(caps: Caps, percents: readonly number[]): string {
  if (DIMENSIONS.every((name) => caps[name] === undefined)) return '';
  return `${DIMENSIONS.map((name) => caps[name] ?? '').join('/')} ${percents.join(',')}`;
}

/**
 * Divides the caps of a level among its slices (EM-3): the slice that asks gets a share of what is free; when too little is
 * free, the other slices return what they have in excess of a share first. Every grant covers the bookings of its slice, and
 * the sum of the grants never exceeds the cap. Undefined when the bookings exceed a cap: then no slice may book alone.
 */
export function divide(level: DividedLevel, demand: Demand): Division | undefined {
  const { caps, slices } = level;
  let isWatched = false;
  const grants = slices.map((): Record<Dimension, bigint> => ({ ...NOTHING }));
  for (const name of DIMENSIONS) {
    const cap = caps[name];
    if (cap === undefined) continue;
    const parts = slices.map(({ index, booked, granted }) => ({
      isOwn: index === demand.index,
      booked: booked[name],
      granted: larger(granted[name], booked[name]),
    }));
    if (sum(parts.map(({ booked }) => booked)) > cap) return undefined;
    const ceiling = ceilingOf(level, name, cap);
    isWatched ||= ceiling.isWatched;
    const divided = divideDimension(parts, ceiling.amount, larger(demand.wanted[name], 1n));
    for (const [index, amount] of divided.entries()) {
      const grant = grants[index];
      if (grant !== undefined) grant[name] = amount;
    }
  }
  return { grants, isWatched };
}

interface Part {
  readonly isOwn: boolean;
  readonly booked: bigint;
  readonly granted: bigint;
}

function divideDimension(parts: readonly Part[], ceiling: bigint, wanted: bigint): bigint[] {
  const granted = parts.map((part) => part.granted);
  const own = parts.find(({ isOwn }) => isOwn);
  if (own === undefined) return granted;
  const total = sum(granted);
  if (own.granted - own.booked >= wanted && total <= ceiling) return granted;
  const spare = ceiling - sum(parts.map(({ booked }) => booked));
  // The existing slices share half of what is left, so that a new slice gets a grant without recalling theirs.
  const share = spare / (2n * BigInt(parts.length));
  const target = smaller(spare, larger(wanted, share));
  const free = ceiling - (total - own.granted) - own.booked;
  if (free >= target) {
    return parts.map((part) => (part.isOwn ? part.booked + target : part.granted));
  }
  const kept = parts.map(({ isOwn, booked, granted: had }) =>
    isOwn ? 0n : smaller(had - booked, share),
  );
  const ownSpare = smaller(target, spare - sum(kept));
  return parts.map(({ isOwn, booked }, index) => booked + (isOwn ? ownSpare : (kept[index] ?? 0n)));
}

/** Grants stay below the next threshold as long as enough is left below it, so that no settlement within them can reach it. */
function ceilingOf(
  { used, slices, percents }: DividedLevel,
  name: Dimension,
  cap: bigint,
): { readonly amount: bigint; readonly isWatched: boolean } {
  const next = percents
    .map((percent) => (cap * BigInt(percent) + 99n) / 100n)
    .find((amount) => amount > used[name]);
  if (next === undefined) return { amount: cap, isWatched: false };
  const below = next - 1n;
  const unbooked = below - sum(slices.map(({ booked }) => booked[name]));
  if (unbooked >= 0n && unbooked >= cap / WATCHED_PART) return { amount: below, isWatched: false };
  return { amount: cap, isWatched: true };
}

function sum(amounts: readonly bigint[]): bigint {
  return amounts.reduce((total, amount) => total + amount, 0n);
}

function larger(a: bigint, b: bigint): bigint {
  return a > b ? a : b;
}

function smaller(a: bigint, b: bigint): bigint {
  return a < b ? a : b;
}
