import { InternalError } from '@writ/kernel';

/** A column of a result. */
export interface ResultField {
  readonly name: string;
  /** The object id of the table of the column; 0 for a computed column. */
  readonly tableID: number;
  readonly dataTypeID: number;
}

const BOOLEAN = 16;
const BYTEA = 17;
const INT8 = 20;
const INT2 = 21;
const INT4 = 23;
const OID = 26;
const FLOAT4 = 700;
const FLOAT8 = 701;
const TIMESTAMPTZ = 1184;
const NUMERIC = 1700;
const WHOLE = /^-?\d+$/;

/** An encoded parameter. */
export type SentValue = string | Buffer | null;

/**
 * Encodes a parameter; accepts and rejects the same values as on SQLite (EM-4).
 * @throws InternalError STORE_INVALID_PARAMETER naming the position, never the value
 */
export function toSent(value: unknown, index: number): SentValue {
  switch (typeof value) {
    case 'string':
      return value;
    case 'number':
      if (Number.isSafeInteger(value)) return String(value);
      if (Number.isFinite(value) && !Number.isInteger(value)) return String(value);
      throw badParameter(index, 'a number that is not exact; use bigint');
    case 'bigint':
      if (BigInt.asIntN(64, value) === value) return String(value);
      throw badParameter(index, 'a bigint of more than 64 bits');
    case 'boolean':
      return value ? 'true' : 'false';
    default:
      if (value === null) return null;
      if (value instanceof Uint8Array)
        return Buffer.from(value.buffer, value.byteOffset, value.byteLength);
      if (value instanceof Date && !Number.isNaN(value.getTime())) return value.toISOString();
      throw badParameter(index, `of type ${typeof value}, which no column can store`);
  }
}

/**
 * Returns the function that decodes a column. It returns the same values as the SQLite store for the same declared
 * type: `bigint` → bigint, `integer` (see {@link PostgresCompiler}) → number, `boolean` → boolean, `timestamptz` →
 * Date, `bytea` → Uint8Array. A computed integer is returned as a number if it is exact, otherwise as a bigint; see
 * {@link int64}.
 */
export function fieldReader({ tableID, dataTypeID }: ResultField): (text: string) => unknown {
  switch (dataTypeID) {
    case BOOLEAN:
      return (text) => text === 't';
    case BYTEA:
      return (text) => new Uint8Array(Buffer.from(text.slice(2), 'hex'));
    case INT8:
      return tableID === 0 ? readComputed : BigInt;
    case INT2:
    case INT4:
    case OID:
    case FLOAT4:
    case FLOAT8:
      return Number;
    case NUMERIC:
      return tableID === 0 ? readComputed : readInteger;
    case TIMESTAMPTZ:
      return readTime;
    default:
      return (text) => text;
  }
}

function readComputed(text: string): number | bigint {
  if (!WHOLE.test(text)) return Number(text);
  const value = BigInt(text);
  if (BigInt.asIntN(64, value) !== value) {
    throw new InternalError('STORE_OVERFLOW', 'A computed integer does not fit into 64 bits.');
  }
  return Number.isSafeInteger(Number(value)) ? Number(value) : value;
}

function readInteger(text: string): number {
  const value = Number(text);
  if (Number.isSafeInteger(value)) return value;
  throw new InternalError(
    'STORE_INEXACT_COLUMN',
    'A column declared integer contains a value beyond 2^53; declare the column bigint in its migration.',
  );
}

// The session's time zone is UTC and its date style ISO: 2026-03-04 05:06:07.089+00.
function readTime(text: string): Date {
  const at = new Date(text.replace(' ', 'T').replace(/\+00$/, 'Z'));
  if (!Number.isNaN(at.getTime())) return at;
  throw new InternalError(
    'STORE_INVALID_TIME',
    'A stored time is outside the range of a JavaScript Date.',
  );
}

function badParameter(index: number, what: string): InternalError {
  return new InternalError(
    'STORE_INVALID_PARAMETER',
    `Parameter ${index + 1} of a query is ${what}.`,
  );
}
