import { InvalidRequestError } from '../errors/errors.ts';

/** One US dollar in nano-USD, the internal unit (EM-4). */
export const NANO_PER_USD = 1_000_000_000n;

/** One US cent in nano-USD. */
export const NANO_PER_CENT = 10_000_000n;

const DECIMAL = /^(-?)(\d{1,12})(?:\.(\d{1,9}))?$/;

/**
 * Parses decimal USD such as `0.10` to nano-USD, exactly (EM-4). At most 12 digits before the decimal point, at most 9
 * decimals and no exponent are allowed, so that no amount is rounded.
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

/** Formats nano-USD as decimal USD: at least two decimals, no further trailing zeros (`0.10`, `0.000125`). */
export function formatUsd(nanoUsd: bigint): string {
  const sign = nanoUsd < 0n ? '-' : '';
  const size = nanoUsd < 0n ? -nanoUsd : nanoUsd;
  const fraction = (size % NANO_PER_USD).toString().padStart(9, '0').replace(/0+$/, '');
  return `${sign}${size / NANO_PER_USD}.${fraction.padEnd(2, '0')}`;
}

/** Rounding of a fraction of a cent: `up` to a larger amount, `down` to a smaller one. */
export type CentRounding = 'up' | 'down';

/** Converts nano-USD to whole cents. The caller chooses the rounding so that no cap can be exceeded (SV-3). */
export function toCents(nanoUsd: bigint, rounding: CentRounding): bigint {
  const whole = nanoUsd / NANO_PER_CENT;
  const rest = nanoUsd % NANO_PER_CENT;
  if (rounding === 'up') return rest > 0n ? whole + 1n : whole;
  return rest < 0n ? whole - 1n : whole;
}

/** Converts whole cents to nano-USD. */
export function fromCents(cents: bigint): bigint {
  return cents * NANO_PER_CENT;
}
