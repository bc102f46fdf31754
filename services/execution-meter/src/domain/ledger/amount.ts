/** What a budget is measured in, in the order in which caps are checked (EM-2). */
export const DIMENSIONS = ['tokens', 'cost', 'turns'] as const;

/** One of {@link DIMENSIONS}. */
export type Dimension = (typeof DIMENSIONS)[number];

/** A figure in every dimension: tokens, nano-USD and round trips. All exact (EM-4). */
export type Amount = Readonly<Record<Dimension, bigint>>;

/** Caps by dimension; a dimension without one is unlimited (EM-1). */
export type Caps = Readonly<Partial<Record<Dimension, bigint>>>;

/** Nothing, in every dimension. */
export const NOTHING: Amount = Object.freeze({ tokens: 0n, cost: 0n, turns: 0n });

/** The sum of two amounts. */
export function plus(a: Amount, b: Amount): Amount {
  return { tokens: a.tokens + b.tokens, cost: a.cost + b.cost, turns: a.turns + b.turns };
}

/** What is left of `a` after taking away `b`; may be negative. */
export function minus(a: Amount, b: Amount): Amount {
  return { tokens: a.tokens - b.tokens, cost: a.cost - b.cost, turns: a.turns - b.turns };
}

/** By how much `a` is above `b`, in each dimension on its own; never negative. */
export function excess(a: Amount, b: Amount): Amount {
  const over = minus(a, b);
  return { tokens: atLeast0(over.tokens), cost: atLeast0(over.cost), turns: atLeast0(over.turns) };
}

/** Whether every dimension is zero. */
export function isNothing(amount: Amount): boolean {
  return amount.tokens === 0n && amount.cost === 0n && amount.turns === 0n;
}

function atLeast0(value: bigint): bigint {
  return value > 0n ? value : 0n;
}
