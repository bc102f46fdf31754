import { DataLossError, fieldsOf, InternalError, UnavailableError } from '@writ/kernel';
import { diskFull } from '../disk-full.ts';

const PRIMARY_CODE = 0xff;
const BUSY = 5;
const LOCKED = 6;
const READONLY = 8;
const IOERR = 10;
const CORRUPT = 11;
const FULL = 13;
const CANTOPEN = 14;
const NOTADB = 26;
const UNIQUE_CODES: ReadonlySet<unknown> = new Set([1555, 2067, 2579]);
const POSTGRES_UNIQUE = '23505';

/**
 * Translates an error of SQLite for the database `label`. Constraint violations and invalid queries pass through
 * unchanged, so that {@link isUniqueViolation} can recognize them.
 */
export function translateSqliteError(error: unknown, label: string): unknown {
  const { code, errcode } = fieldsOf(error);
  if (code === 'ERR_INVALID_STATE') {
    return new UnavailableError(
      'STORE_CLOSED',
      `The connection to ${label} is closed.`,
      {},
      cause(error),
    );
  }
  if (code !== 'ERR_SQLITE_ERROR' || typeof errcode !== 'number') return error;
  switch (errcode & PRIMARY_CODE) {
    case BUSY:
    case LOCKED:
      return new UnavailableError(
        'STORE_BUSY',
        `Another process holds the write lock of ${label}.`,
        {},
        cause(error),
      );
    case READONLY:
      return new InternalError(
        'STORE_READ_ONLY',
        `A write to ${label} was rejected: use store.transaction for writes, and make sure that the file is writable.`,
        {},
        cause(error),
      );
    case FULL:
      return diskFull(label, { sqlite_code: String(errcode) }, cause(error));
    case IOERR:
    case CANTOPEN:
      return new UnavailableError(
        'STORE_DISK_FAILED',
        `${label} cannot be opened, read or written; check its disk, path and permissions.`,
        { sqlite_code: String(errcode) },
        cause(error),
      );
    case CORRUPT:
    case NOTADB:
      return new DataLossError(
        'STORE_CORRUPT',
        `${label} is corrupt or not a SQLite database.`,
        { sqlite_code: String(errcode) },
        cause(error),
      );
    default:
      return error;
  }
}

/** Whether `error` is a unique violation, on SQLite or PostgreSQL. */
export function isUniqueViolation(error: unknown): boolean {
  const { code, errcode } = fieldsOf(error);
  return UNIQUE_CODES.has(errcode) || code === POSTGRES_UNIQUE;
}

function cause(error: unknown): ErrorOptions {
  return { cause: error };
}
