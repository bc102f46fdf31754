import type { SQLInputValue, SQLOutputValue } from 'node:sqlite';
import { InternalError } from '@writ/kernel';

/** Converts a value of SQLite to the declared type of its column. */
export type ColumnReader = (value: SQLOutputValue) => unknown;

/**
 * Converts a parameter. Whole numbers are bound as integers, because node:sqlite binds
 * every number as REAL, and `amount + 5.0` is not exact beyond 2^53 (EM-4).
 * Booleans become 0 and 1, dates ISO 8601 text in UTC.
 * @throws InternalError STORE_INVALID_PARAMETER naming the position, never the value
 */
export function toBound(value: unknown, index: number): SQLInputValue {
  switch (typeof value) {
    case 'string':
      return value;
    case 'number':
      if (Number.isSafeInteger(value)) return BigInt(value);
      if (Number.isFinite(value) && !Number.isInteger(value)) return value;
      throw badParameter(index, 'a number that is not exact; use bigint');
    case 'bigint':
      if (BigInt.asIntN(64, value) === value) return value;
      throw badParameter(index, 'a bigint of more than 64 bits');
    case 'boolean':
      return value ? 1n : 0n;
    default:
      if (value === null || value instanceof Uint8Array) return value;
      if (value instanceof Date && !Number.isNaN(value.getTime())) return value.toISOString();
      throw badParameter(index, `of type ${typeof value}, which no column can store`);
  }
}

/**
 * Returns the function that converts values of a column by its declared type, the same as on PostgreSQL: `bigint` →
 * bigint, `boolean` → boolean, `timestamptz` → Date, other integers → number. A computed column has no declared type:
 * an integer is returned as a number if it is exact, otherwise as a bigint; see {@link int64}.
 */
export function readerFor(declaredType: string | null): ColumnReader {
  switch (declaredType?.toLowerCase()) {
    case undefined:
      return readComputed;
    case 'bigint':
      return readAsIs;
    case 'boolean':
      return (value) => (value === null ? null : value !== 0n);
    case 'timestamptz':
      return (value) => (typeof value === 'string' ? new Date(value) : value);
    default:
      return readDeclared;
  }
}

const readAsIs: ColumnReader = (value) => value;

const readComputed: ColumnReader = (value) =>
  typeof value === 'bigint' && isExactNumber(value) ? Number(value) : value;

const readDeclared: ColumnReader = (value) => {
  if (typeof value !== 'bigint') return value;
  if (isExactNumber(value)) return Number(value);
  throw new InternalError(
    'STORE_INEXACT_COLUMN',
    'A column declared integer contains a value beyond 2^53; declare the column bigint in its migration.',
  );
};

function isExactNumber(value: bigint): boolean {
  return value >= Number.MIN_SAFE_INTEGER && value <= Number.MAX_SAFE_INTEGER;
}

function badParameter(index: number, what: string): InternalError {
  return new InternalError(
    'STORE_INVALID_PARAMETER',
    `Parameter ${index + 1} of a query is ${what}.`,
  );
}
