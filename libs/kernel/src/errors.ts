import type { ErrorKind, Reason, ReasonOf } from './reasons.ts';

/** Facts about an error that are safe to show to the caller: ids, fields, limits; never content. */
export type ErrorMetadata = Readonly<Record<string, string>>;

/**
 * The base of every error that may cross a boundary (SYS-3). `reason` is stable UPPER_SNAKE,
 * `message` is one sentence for a person, `metadata` names the field, limit or id concerned.
 */
export abstract class WritError<K extends ErrorKind = ErrorKind> extends Error {
  abstract readonly kind: K;
  /** One of the reason codes; a peer of a later release may send one that this release lacks. */
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

/** Mend the request before sending it again; `metadata.field` names what to mend. */
export class InvalidRequestError extends WritError<'invalid_argument'> {
  readonly kind = 'invalid_argument';
}

/** Present a valid credential. */
export class UnauthenticatedError extends WritError<'unauthenticated'> {
  readonly kind = 'unauthenticated';
}

/** The caller is known and may not do this; asking again changes nothing. */
export class PermissionDeniedError extends WritError<'permission_denied'> {
  readonly kind = 'permission_denied';
}

/** The thing named does not exist for this tenant. */
export class NotFoundError extends WritError<'not_found'> {
  readonly kind = 'not_found';
}

/** The thing exists already, with other content. */
export class AlreadyExistsError extends WritError<'already_exists'> {
  readonly kind = 'already_exists';
}

/** The state of the system forbids this now: change that state first, do not merely retry. */
export class PreconditionError extends WritError<'failed_precondition'> {
  readonly kind = 'failed_precondition';
}

/** The service has no room at this moment (queue, stream or rate limit): back off, then retry. */
export class OverloadedError extends WritError<'resource_exhausted'> {
  readonly kind = 'resource_exhausted';
}

/** Somebody else changed it first: read again and retry. */
export class ConflictError extends WritError<'aborted'> {
  readonly kind = 'aborted';
}

/** A dependency did not answer; the same call may succeed later. */
export class UnavailableError extends WritError<'unavailable'> {
  readonly kind = 'unavailable';
}

/** The time allowed for this ran out. */
export class DeadlineError extends WritError<'deadline_exceeded'> {
  readonly kind = 'deadline_exceeded';
}

/** The work was cancelled: unwind, do not retry (SUP-6). */
export class CancellationError extends WritError<'cancelled'> {
  readonly kind = 'cancelled';
  /** Why, in the words of whoever cancelled. */
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

/** This server does not offer it. */
export class NotImplementedError extends WritError<'unimplemented'> {
  readonly kind = 'unimplemented';
}

/** A fault of the system itself; report it. */
export class InternalError extends WritError<'internal'> {
  readonly kind = 'internal';
}

/** Stored data is damaged or contradicts its own digest; a person has to look. */
export class DataLossError extends WritError<'data_loss'> {
  readonly kind = 'data_loss';
}

/** Whether `error` is one of the named errors. */
export function isWritError(error: unknown): error is WritError {
  return error instanceof WritError;
}

/** Whether the same idempotent call may simply be made again: kinds `unavailable` and `aborted`. */
export function isRetryable(error: unknown): boolean {
  return isWritError(error) && (error.kind === 'unavailable' || error.kind === 'aborted');
}

/**
 * A named error for whatever was thrown. Named errors pass through; anything else becomes an
 * InternalError with reason INTERNAL whose message tells nothing of the original, which stays
 * reachable as `cause` for logs only.
 */
export function wrapUnknown(error: unknown): WritError {
  if (isWritError(error)) return error;
  return new InternalError(
    'INTERNAL',
    'An internal error happened; the service log has the details.',
    {},
    { cause: error },
  );
}
