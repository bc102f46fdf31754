/** Dimensions of a budget, in the order of cap checks (EM-2). */
export const DIMENSIONS = ['tokens', 'cost', 'turns'] as const;

/** One of {@link DIMENSIONS}. */
export type Dimension = (typeof DIMENSIONS)[number];

/** A value in every dimension: tokens, nano-USD and round trips. Exact integers (EM-4). */
export type Amount = Readonly<Record<Dimension, bigint>>;

/** Caps by dimension; a dimension without a cap is unlimited (EM-1). */
export type Caps = Readonly<Partial<Record<Dimension, bigint>>>;

/** Zero in every dimension. */
export const NOTHING: Amount = Object.freeze({ tokens: 0n, cost: 0n, turns: 0n });

/** Adds two amounts. */
export function plus(a: Amount, b: Amount): Amount {
  return { tokens: a.tokens + b.tokens, cost: a.cost + b.cost, turns: a.turns + b.turns };
}

/** Subtracts `b` from `a`; the result can be negative. */
export function minus(a: Amount, b: Amount): Amount {
  return { tokens: a.tokens - b.tokens, cost: a.cost - b.cost, turns: a.turns - b.turns };
}

/** Returns by how much `a` exceeds `b` in each dimension; never negative. */
export function excess(a: Amount, b: Amount): Amount {
  const over = minus(a, b);
  return { tokens: atLeast0(over.tokens), cost: atLeast0(over.cost), turns: atLeast0(over.turns) };
}

/** Whether every dimension is zero. */
export function isNothing(amount: Amount): boolean {
  return amount.tokens === 0n && amount.cost === 0n && amount.turns === 0n;
}

/** Returns the smaller cap of each dimension. */
export function lowerCaps(a: Caps, b: Caps): Caps {
  const lower: Partial<Record<Dimension, bigint>> = {};
  for (const name of DIMENSIONS) {
    const [one, other] = [a[name], b[name]];
    const cap = one === undefined || (other !== undefined && other < one) ? other : one;
    if (cap !== undefined) lower[name] = cap;
  }
  return lower;
}

function atLeast0(value: bigint): bigint {
  return value > 0n ? value : 0n;
}
