import {
  ConflictError,
  DataLossError,
  DeadlineError,
  type ErrorMetadata,
  InternalError,
  InvalidRequestError,
  isWritError,
  UnavailableError,
} from '@writ/kernel';
import { diskFull, isDiskFull } from '../disk-full.ts';

/** Descriptions of insufficient resources by SQLSTATE (class 53). */
const SHORTAGES: Readonly<Record<string, string>> = {
  '53200': 'the PostgreSQL server is out of memory',
  '53300': 'the PostgreSQL server allows no more connections',
  '53400': 'a limit of the PostgreSQL server is exceeded',
};
/** SQLSTATE with which a standby server rejects statements that write, and LISTEN. */
const READ_ONLY = '25006';
/** SQLSTATE of an unsupported feature, with which a standby server rejects BEGIN of a read-write transaction. */
const UNSUPPORTED = '0A000';
const STALE_PLAN = 'cached plan must not change result type';

/** Returns the SQLSTATE of an error; undefined for connection errors, whose codes, such as EPIPE, contain no digit. */
function sqlStateOf(error: unknown): string | undefined {
  const { code } = error as { readonly code?: unknown };
  return typeof code === 'string' && /^(?=.*\d)[0-9A-Z]{5}$/.test(code) ? code : undefined;
}

/** Whether `error` makes the connection unusable. */
export function endsConnection(error: unknown): boolean {
  const state = sqlStateOf(error);
  if (state === undefined) return !(error instanceof InternalError);
  return /^(08|57P|25P03)/.test(state) || (error as Error).message.includes(STALE_PLAN);
}

/**
 * Translates an error of PostgreSQL for the database `label`. Errors that are already translated, constraint
 * violations, invalid queries and rejected credentials pass through unchanged, so that `isUniqueViolation` can
 * recognize unique violations.
 * @param server host and port for the log; added to the cause of STORE_UNREACHABLE instead of the message, because
 *   callers receive the message
 */
export function translatePostgresError(error: unknown, label: string, server: string): unknown {
  if (isWritError(error)) return error;
  const cause = { cause: error };
  const state = sqlStateOf(error);
  const metadata = state === undefined ? {} : { sqlstate: state };
  if (state === '53100') return diskFull(label, metadata, cause);
  if (state === undefined || endsConnection(error) || state.startsWith('53')) {
    const sentence =
      state?.startsWith('53') === true
        ? `is unavailable: ${SHORTAGES[state] ?? 'the PostgreSQL server has too few resources'}`
        : `is unreachable${reasonOf(error)}`;
    return unreachable(`${label} ${sentence}.`, metadata, `${server}.`, error);
  }
  switch (state) {
    case '55P03':
      return new UnavailableError(
        'STORE_BUSY',
        `Another session holds a lock of ${label}; retry later.`,
        metadata,
        cause,
      );
    case '40001':
    case '40P01':
      return new ConflictError(
        'STORE_CONFLICT',
        `A transaction of ${label} conflicted with another; retry.`,
        metadata,
        cause,
      );
    case '57014':
      return new DeadlineError(
        'STORE_TRANSACTION_TIMEOUT',
        `A statement on ${label} exceeded its time limit.`,
        metadata,
        cause,
      );
    case READ_ONLY:
      return new InternalError(
        'STORE_READ_ONLY',
        `A write to ${label} was rejected: use store.transaction for writes.`,
        metadata,
        cause,
      );
    case '22021':
      return new InvalidRequestError(
        'STORE_INVALID_TEXT',
        'A text contains a NUL character, which PostgreSQL cannot store.',
        metadata,
        cause,
      );
    case 'XX001':
    case 'XX002':
      return new DataLossError('STORE_CORRUPT', `${label} is corrupt.`, metadata, cause);
    default:
      return error;
  }
}

/**
 * Translates an error that prevents a store that is already open from opening another session. Errors that the operator
 * can correct while the service runs, such as a changed password, become STORE_UNREACHABLE, so that callers retry; the
 * cause contains their text, because callers do not receive the cause and a log line about an outage contains only the
 * first cause. STORE_DISK_FULL and STORE_CORRUPT remain unchanged.
 */
export function translateSessionError(error: unknown, label: string, server: string): unknown {
  const translated = translatePostgresError(error, label, server);
  const keepsReason = translated instanceof UnavailableError || translated instanceof DataLossError;
  if (keepsReason || isDiskFull(translated)) return translated;
  const metadata = isWritError(translated)
    ? translated.metadata
    : { sqlstate: String(sqlStateOf(translated)) };
  const { sqlstate } = metadata;
  if (sqlstate === READ_ONLY) return onStandby(sqlstate, label, server, error);
  const code = sqlstate === undefined ? '' : ` (SQLSTATE ${sqlstate})`;
  const sentence = `is unavailable: no session can be opened${code}`;
  const text = error instanceof Error ? error.message : String(error);
  return unreachable(`${label} ${sentence}.`, metadata, `${server}: ${text}`, error);
}

/** Translates an error of the statements that begin a transaction. A standby server rejects them as unsupported. */
export function translateBeginError(error: unknown, label: string, server: string): unknown {
  const translated = translatePostgresError(error, label, server);
  const state = sqlStateOf(error) ?? '';
  const isStandby =
    !(translated instanceof UnavailableError) && (state === READ_ONLY || state === UNSUPPORTED);
  return isStandby ? onStandby(state, label, server, error) : translated;
}

function onStandby(
  sqlstate: string,
  label: string,
  server: string,
  error: unknown,
): UnavailableError {
  const message = `${label} is on a standby server, which accepts no writes.`;
  return unreachable(message, { sqlstate }, `${server}.`, error);
}

/** @param details host and port of the server, followed by text that is only for the log */
function unreachable(
  message: string,
  metadata: ErrorMetadata,
  details: string,
  cause: unknown,
): UnavailableError {
  return new UnavailableError('STORE_UNREACHABLE', message, metadata, {
    cause: new Error(`The PostgreSQL server is ${details}`, { cause }),
  });
}

/** The cause of a failed connection, without the address of the server. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error) || sqlStateOf(error) !== undefined) return '';
  const code = 'code' in error && typeof error.code === 'string' ? error.code : '';
  const reason = code || error.message.replace(/\.$/, '');
  return reason === '' ? '' : ` (${reason})`;
}
