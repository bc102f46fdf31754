import {
  ConflictError,
  DataLossError,
  DeadlineError,
  InternalError,
  InvalidRequestError,
  UnavailableError,
} from '@writ/kernel';

const STALE_PLAN = 'cached plan must not change result type';

/** The SQLSTATE that PostgreSQL answered with; absent when the connection itself failed. */
function sqlStateOf(error: unknown): string | undefined {
  const { code } = error as { readonly code?: unknown };
  return typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code) ? code : undefined;
}

/** Whether the connection cannot be used any more after `error`. */
export function endsConnection(error: unknown): boolean {
  const state = sqlStateOf(error);
  if (state === undefined) return !(error instanceof InternalError);
  return /^(08|57P|25P03)/.test(state) || (error as Error).message.includes(STALE_PLAN);
}

/**
 * The named error for what PostgreSQL reported about the database called `label`. Constraint
 * violations and faults of a query pass through unchanged, so that `isUniqueViolation` can tell
 * them apart.
 */
export function translatePostgresError(error: unknown, label: string): unknown {
  if (error instanceof InternalError) return error;
  const cause = { cause: error };
  const state = sqlStateOf(error);
  const metadata = state === undefined ? {} : { sqlstate: state };
  if (state === undefined || endsConnection(error) || state.startsWith('53')) {
    if (state === '53100') {
      return new UnavailableError(
        'STORE_DISK_FAILED',
        `The disk under ${label} is full.`,
        metadata,
        cause,
      );
    }
    return new UnavailableError(
      'STORE_UNREACHABLE',
      `${label} did not answer${whyOf(error)}.`,
      metadata,
      cause,
    );
  }
  switch (state) {
    case '55P03':
      return new UnavailableError(
        'STORE_BUSY',
        `Another process holds the write lock of ${label}.`,
        metadata,
        cause,
      );
    case '40001':
    case '40P01':
      return new ConflictError(
        'STORE_CONFLICT',
        `A transaction of ${label} met another.`,
        metadata,
        cause,
      );
    case '57014':
      return new DeadlineError(
        'STORE_TRANSACTION_TIMEOUT',
        `A statement on ${label} took longer than it may.`,
        metadata,
        cause,
      );
    case '25006':
      return new InternalError(
        'STORE_READ_ONLY',
        `A write to ${label} was refused: store.db only reads, writes belong in store.transaction.`,
        metadata,
        cause,
      );
    case '22021':
      return new InvalidRequestError(
        'STORE_INVALID_TEXT',
        'A text holds a NUL character, which PostgreSQL cannot keep.',
        metadata,
        cause,
      );
    case 'XX001':
    case 'XX002':
      return new DataLossError('STORE_CORRUPT', `${label} is damaged.`, metadata, cause);
    default:
      return error;
  }
}

/** Why a connection failed before the server said anything, without saying where the server is. */
function whyOf(error: unknown): string {
  if (!(error instanceof Error) || sqlStateOf(error) !== undefined) return '';
  const code = 'code' in error && typeof error.code === 'string' ? error.code : '';
  const why = code || error.message.replace(/\.$/, '');
  return why === '' ? '' : ` (${why})`;
}
