/** Largest precision that a tool can declare; a JSON number has about 15 exact digits. */
export const MAX_DECIMALS = 15;

/**
 * Whether a number has at most `decimals` decimal places, read as the decimal that JSON prints:
 * 700.55 has two, 700.555 three, 1e-7 seven (TG-3, SV-5). False for NaN and infinities.
 *
 * @example
 * ```ts
 * import { fitsDecimals } from '@writ/kernel';
 *
 * fitsDecimals(700.55, 2); // true
 * fitsDecimals(700.555, 2); // false
 * ```
 */
export function fitsDecimals(value: number, decimals: number): boolean {
  if (!Number.isFinite(value)) return false;
  const [mantissa = '', exponent = '0'] = value.toExponential().split('e');
  const [, fraction = ''] = mantissa.split('.');
  return fraction.length - Number(exponent) <= decimals;
}
