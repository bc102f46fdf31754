import { InternalError } from '@writ/kernel';

/**
 * Converts a computed value (`sum`, `max`, `count`, `coalesce`) to an exact 64-bit integer. Queries return columns
 * declared `bigint` as bigint already. A computed value has no declared type: it is returned as a number if a number
 * represents it exactly, otherwise as a bigint (EM-4).
 * @throws InternalError STORE_INVALID_INT64 if the value is not an integer or was already rounded
 */
export function int64(value: unknown): bigint {
  if (typeof value === 'bigint') return value;
  if (typeof value === 'number' && Number.isSafeInteger(value)) return BigInt(value);
  if (typeof value === 'string' && /^-?\d+$/.test(value)) return BigInt(value);
  throw new InternalError(
    'STORE_INVALID_INT64',
    `A stored value of type ${value === null ? 'null' : typeof value} is not an exact integer.`,
  );
}
