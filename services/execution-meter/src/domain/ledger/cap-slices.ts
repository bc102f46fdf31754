import { type Amount, type Caps, DIMENSIONS, type Dimension, NOTHING } from './amount.ts';

/**
 * One slice of a level: its booked amount, and its grant, which is the amount up to which the slice may book without
 * reading other slices. Unlike a slot grant, this grant is a part of a cap.
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

/** The slice that requests a larger grant. */
export interface Demand {
  readonly index: number;
  /**
   * Amount that the booking of this transaction reserved; the new grant leaves space for another booking of this size.
   * If it is zero or negative, as after a settlement or release, 1 is used instead.
   */
  readonly wanted: Amount;
}

/** Grants of all slices. */
export interface Division {
  /** In the order of the slices. */
  readonly grants: readonly Amount[];
  /** Whether settlements within the grants can reach a threshold, so that each settlement must read all slices. */
  readonly isWatched: boolean;
}

/**
 * Settlements are watched when the unbooked amount below the next threshold is less than the cap divided by this
 * number.
 */
const WATCHED_PART = 16n;

/**
 * Returns the caps and thresholds on which grants are based, as text; grants that were computed from other caps or
 * thresholds are invalid. Empty for a level without caps.
 */
export function termsOf(caps: Caps, percents: readonly number[]): string {
  if (DIMENSIONS.every((name) => caps[name] === undefined)) return '';
  return `${DIMENSIONS.map((name) => caps[name] ?? '').join('/')} ${percents.join(',')}`;
}

/**
 * Divides the caps of a level among its slices (EM-3). The requesting slice gets a share of the free amount; when too
 * little is free, the unused grants of the other slices are first reduced to at most one share each. Every grant covers
 * the bookings of its slice, and the sum of the grants never exceeds the cap. Returns undefined when the bookings
 * exceed a cap; then every booking must read all slices.
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
  // The existing slices share half of the remaining amount, so that a new slice can get a grant without a reduction of
  // their grants.
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

/**
 * Returns the upper bound of the sum of all grants. While enough of the cap remains below the next threshold, the bound
 * is below this threshold, so that no settlement within the grants can reach it. Otherwise the bound is the cap, and
 * settlements are watched if a threshold remains.
 */
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
