/** The largest number of cents counted: past it a JSON number is no longer exact. */
export const MAX_CENTS = BigInt(Number.MAX_SAFE_INTEGER);
/** Below it no two amounts of whole cents are the same JSON number. */
const EXACT_CENTS = 1e13;

/**
 * A USD amount in whole cents, a fraction of a cent counted as a whole one (SV-3). The amount is
 * read as the decimal that JSON writes, so 1.1 is 110 cents and not 111. What is beyond
 * {@link MAX_CENTS} counts as that much.
 * @throws RangeError for NaN and infinities
 */
export function centsUp(usd: number): bigint {
  return toCents(usd, 'up');
}

/** As {@link centsUp}, but a fraction of a cent is left out: for limits and what remains of them. */
export function centsDown(usd: number): bigint {
  return toCents(usd, 'down');
}

/** Whole cents as a USD amount; the result has at most two decimals. */
export function usdFromCents(cents: bigint): number {
  return Number(clamp(cents)) / 100;
}

/** `value` held within what a JSON number can say exactly. */
export function clamp(value: bigint): bigint {
  if (value > MAX_CENTS) return MAX_CENTS;
  return value < -MAX_CENTS ? -MAX_CENTS : value;
}

function toCents(usd: number, rounding: 'up' | 'down'): bigint {
  if (!Number.isFinite(usd)) throw new RangeError('an amount must be a finite number');
  const cents = Math.round(usd * 100);
  // The usual amount has two decimals: then it is the number nearest to them, and no other is.
  if (cents / 100 === usd && Math.abs(cents) < EXACT_CENTS) return BigInt(cents);
  const [mantissa = '0', exponent = '0'] = usd.toExponential().split('e');
  const [whole = '0', fraction = ''] = mantissa.split('.');
  const digits = BigInt(whole + fraction);
  const scale = Number(exponent) - fraction.length + 2;
  if (scale >= 0) return clamp(digits * 10n ** BigInt(scale));
  const unit = 10n ** BigInt(-scale);
  const towardZero = digits / unit;
  const rest = digits % unit;
  if (rest > 0n && rounding === 'up') return clamp(towardZero + 1n);
  if (rest < 0n && rounding === 'down') return clamp(towardZero - 1n);
  return clamp(towardZero);
}
