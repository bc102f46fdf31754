import type { ErrorKind, Reason, ReasonOf } from './reasons.ts';

/** Details of an error that the caller may see: ids, fields, limits; never content. */
export type ErrorMetadata = Readonly<Record<string, string>>;

/**
 * The base class of all named errors (SYS-3). `reason` is stable UPPER_SNAKE,
 * `message` is one sentence for a person, `metadata` names the field, limit or id concerned.
 */
export abstract class WritError<K extends ErrorKind = ErrorKind> extends Error {
  abstract readonly kind: K;
  /** One of the reason codes; a peer with a later release may send a code that this release does not define. */
  readonly reason: Reason;
  readonly metadata: ErrorMetadata;

  constructor(
    reason: ReasonOf<K>,
    message: string,
    metadata: ErrorMetadata = {},
    options?: ErrorOptions,
  ) {
    super(message, options);
    this.name = new.target.name;
    this.reason = reason;
    this.metadata = Object.freeze({ ...metadata });
  }
}

/** The request is invalid: correct it before sending it again; `metadata.field`, if set, names the field. */
export class InvalidRequestError extends WritError<'invalid_argument'> {
  readonly kind = 'invalid_argument';
}

/** The credential is missing or invalid. */
export class UnauthenticatedError extends WritError<'unauthenticated'> {
  readonly kind = 'unauthenticated';
}

/** The authenticated caller is not permitted to do this; a retry does not help. */
export class PermissionDeniedError extends WritError<'permission_denied'> {
  readonly kind = 'permission_denied';
}

/** The named resource does not exist for this tenant. */
export class NotFoundError extends WritError<'not_found'> {
  readonly kind = 'not_found';
}

/** The resource already exists: another request created it, or it has other content. */
export class AlreadyExistsError extends WritError<'already_exists'> {
  readonly kind = 'already_exists';
}

/** The state of the system does not permit this: change that state first; a retry does not help. */
export class PreconditionError extends WritError<'failed_precondition'> {
  readonly kind = 'failed_precondition';
}

/** A capacity limit is reached (queue, streams, rate): back off, then retry. */
export class OverloadedError extends WritError<'resource_exhausted'> {
  readonly kind = 'resource_exhausted';
}

/** A concurrent change conflicted: read again and retry. */
export class ConflictError extends WritError<'aborted'> {
  readonly kind = 'aborted';
}

/** A dependency is unavailable; the same call may succeed later. */
export class UnavailableError extends WritError<'unavailable'> {
  readonly kind = 'unavailable';
}

/** The deadline has passed. */
export class DeadlineError extends WritError<'deadline_exceeded'> {
  readonly kind = 'deadline_exceeded';
}

/** The work was cancelled: clean up, do not retry (SUP-6). */
export class CancellationError extends WritError<'cancelled'> {
  readonly kind = 'cancelled';
  /** The reason given by the canceller. */
  readonly cancelReason: string;

  constructor(cancelReason: string, metadata: ErrorMetadata = {}, options?: ErrorOptions) {
    super(
      'CANCELLED',
      `Cancelled: ${cancelReason}`,
      { ...metadata, cancel_reason: cancelReason },
      options,
    );
    this.cancelReason = cancelReason;
  }
}

/** The server does not implement this. */
export class NotImplementedError extends WritError<'unimplemented'> {
  readonly kind = 'unimplemented';
}

/** A bug of the system; report it. */
export class InternalError extends WritError<'internal'> {
  readonly kind = 'internal';
}

/** Stored data is corrupt or does not match its digest; an operator must inspect it. */
export class DataLossError extends WritError<'data_loss'> {
  readonly kind = 'data_loss';
}

/**
 * Whether `error` is one of the named errors.
 *
 * @example
 * ```ts
 * import { isWritError } from '@writ/kernel';
 *
 * export const reasonOf = (error: unknown) => (isWritError(error) ? error.reason : 'unknown');
 * ```
 */
export function isWritError(error: unknown): error is WritError {
  return error instanceof WritError;
}

/** Whether an idempotent call may be retried: kinds `unavailable` and `aborted`. */
export function isRetryable(error: unknown): boolean {
  return isWritError(error) && (error.kind === 'unavailable' || error.kind === 'aborted');
}

/**
 * Converts a thrown value to a named error. Named errors are returned unchanged; everything else becomes an
 * InternalError with reason INTERNAL and a generic message; the original is its `cause`, for logs only.
 */
export function wrapUnknown(error: unknown): WritError {
  if (isWritError(error)) return error;
  return new InternalError(
    'INTERNAL',
    'Internal error; see the log of the service.',
    {},
    { cause: error },
  );
}

/** Whether a token was rejected only because of its times, which a wrong clock can cause (BD-3). */
export function isClockError(error: unknown): boolean {
  if (!isWritError(error)) return false;
  const { check } = error.metadata;
  return error.reason === 'TOKEN_EXPIRED' || check === 'iat' || check === 'nbf';
}
