/** Largest number of cents; above it a JSON number is no longer exact. */
export const MAX_CENTS = BigInt(Number.MAX_SAFE_INTEGER);
/** Below this limit, every amount of whole cents is a distinct JSON number. */
const EXACT_CENTS = 1e13;

/**
 * Converts a USD amount to whole cents, rounded up (SV-3). The amount is interpreted as the decimal
 * that JSON prints, so 1.1 is 110 cents and not 111. The result is clamped to {@link MAX_CENTS}.
 * @throws RangeError for NaN and infinities
 */
export function centsUp(usd: number): bigint {
  return toCents(usd, 'up');
}

/** Like {@link centsUp}, but rounded down: for limits and remaining amounts. */
export function centsDown(usd: number): bigint {
  return toCents(usd, 'down');
}

/** Converts whole cents to a USD amount with at most two decimals. */
export function usdFromCents(cents: bigint): number {
  return Number(clamp(cents)) / 100;
}

/** Clamps `value` to the range that a JSON number represents exactly. */
export function clamp(value: bigint): bigint {
  if (value > MAX_CENTS) return MAX_CENTS;
  return value < -MAX_CENTS ? -MAX_CENTS : value;
}

function toCents(usd: number, rounding: 'up' | 'down'): bigint {
  if (!Number.isFinite(usd)) throw new RangeError('an amount must be a finite number');
  const cents = Math.round(usd * 100);
  // Fast path: the amount is the double nearest to a whole number of cents.
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
