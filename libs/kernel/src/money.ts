import { InvalidRequestError } from './errors.ts';

/** One US dollar in the unit used inside: nano-USD (EM-4). */
export const NANO_PER_USD = 1_000_000_000n;

/** One US cent in nano-USD. */
export const NANO_PER_CENT = 10_000_000n;

const DECIMAL = /^(-?)(\d{1,12})(?:\.(\d{1,9}))?$/;

/**
 * Reads decimal USD such as `0.10` into nano-USD, exactly (EM-4). At most 9 decimals and no
 * exponent, so that nothing is ever rounded.
 * @throws InvalidRequestError INVALID_AMOUNT naming `field`
 */
export function parseUsd(text: string, field = 'amount'): bigint {
  const [, sign, whole, fraction = ''] = DECIMAL.exec(text) ?? [];
  if (whole === undefined) {
    throw new InvalidRequestError(
      'INVALID_AMOUNT',
      `${field} must be decimal USD with at most 9 decimals, such as 0.10.`,
      { field },
    );
  }
  const nano = BigInt(whole) * NANO_PER_USD + BigInt(fraction.padEnd(9, '0'));
  return sign === '-' ? -nano : nano;
}

/** Writes nano-USD as decimal USD: at least two decimals, no further trailing zeros (`0.10`, `0.000125`). */
export function formatUsd(nanoUsd: bigint): string {
  const sign = nanoUsd < 0n ? '-' : '';
  const size = nanoUsd < 0n ? -nanoUsd : nanoUsd;
  const fraction = (size % NANO_PER_USD).toString().padStart(9, '0').replace(/0+$/, '');
  return `${sign}${size / NANO_PER_USD}.${fraction.padEnd(2, '0')}`;
}

/** Which way a fraction of a cent goes: `up` is toward a larger amount, `down` toward a smaller one. */
export type CentRounding = 'up' | 'down';

/** Nano-USD in whole cents. The caller says which way to round: toward the cap that is at stake (SV-3). */
export function toCents(nanoUsd: bigint, rounding: CentRounding): bigint {
  const whole = nanoUsd / NANO_PER_CENT;
  const rest = nanoUsd % NANO_PER_CENT;
  if (rounding === 'up') return rest > 0n ? whole + 1n : whole;
  return rest < 0n ? whole - 1n : whole;
}

/** Whole cents in nano-USD. */
export function fromCents(cents: bigint): bigint {
  return cents * NANO_PER_CENT;
}
