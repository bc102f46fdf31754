/**
 * Maximum number of passes in one evaluation (BD-1). A pass is the unit of work: the time of one iteration of a loop.
 * The maximum takes a few tenths of a second.
 */
const MAX_PASSES = 1_000_000;

const EXCEEDED = new RangeError(`the expression takes more than ${MAX_PASSES} passes`);

/** Passes that the current evaluation may still take. Evaluations are synchronous and not nested. */
let remaining = 0;

/**
 * Evaluates an expression that counts its passes with {@link spend}.
 * @throws RangeError if there are too many passes, even if the expression ignores errors, as `||` and `exists` do
 */
export function withPassLimit<T>(evaluate: () => T): T {
  remaining = MAX_PASSES;
  const value = evaluate();
  spend(0);
  return value;
}

/**
 * Counts passes of the current evaluation; a fraction of a pass is not counted.
 * @throws RangeError if there are too many passes
 */
export function spend(passes: number): void {
  remaining -= Math.floor(passes);
  if (remaining < 0) throw EXCEEDED;
}
