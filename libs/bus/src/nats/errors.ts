import { JetStreamApiError } from '@nats-io/jetstream';
import {
  AuthorizationError,
  InvalidArgumentError,
  NoRespondersError,
  PermissionViolationError,
} from '@nats-io/transport-node';
import {
  InvalidRequestError,
  isWritError,
  PermissionDeniedError,
  UnauthenticatedError,
  UnavailableError,
  type WritError,
} from '@writ/kernel';

/** Finds an error of a class among an error and its causes. */
function causeOf<T>(error: unknown, kind: abstract new (...args: never[]) => T): T | undefined {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    if (cause instanceof kind) return cause;
  }
  return undefined;
}

/** The JetStream API error in an error and its causes. */
export function apiErrorOf(error: unknown): JetStreamApiError | undefined {
  return causeOf(error, JetStreamApiError);
}

/** Returns BUS_PERMISSION_DENIED if the server denied a permission; undefined for any other cause. */
function forbidden(error: unknown): PermissionDeniedError | undefined {
  const violation = causeOf(error, PermissionViolationError);
  if (violation === undefined) return undefined;
  const { operation, subject } = violation;
  return new PermissionDeniedError(
    'BUS_PERMISSION_DENIED',
    `The NATS credentials do not permit ${operation} of ${subject}.`,
    { subject },
    { cause: error },
  );
}

/** Returns the WritError for a failed connection. */
export function connectionError(error: unknown, servers: readonly string[]): WritError {
  if (isWritError(error)) return error;
  const denied = forbidden(error);
  if (denied !== undefined) return denied;
  const where = servers.map(withoutPassword).join(', ');
  if (causeOf(error, AuthorizationError) !== undefined) {
    return new UnauthenticatedError(
      'BUS_CREDENTIALS_REJECTED',
      `NATS server ${where} rejected the credentials.`,
      {},
      { cause: error },
    );
  }
  const why = error instanceof Error ? error.message : String(error);
  return new UnavailableError(
    'BUS_UNREACHABLE',
    `NATS server ${where} is unreachable: ${why}.`,
    {},
    { cause: error },
  );
}

/** Returns the WritError for a message that NATS did not accept. */
export function publishError(error: unknown, eventId: string): WritError {
  if (isWritError(error)) return error;
  const denied = forbidden(error);
  if (denied !== undefined) return denied;
  if (causeOf(error, InvalidArgumentError)?.message.includes('max_payload') === true) {
    return new InvalidRequestError(
      'BUS_MESSAGE_TOO_LARGE',
      `Message ${eventId} exceeds the maximum payload of the NATS server.`,
      { event_id: eventId },
      { cause: error },
    );
  }
  const why =
    causeOf(error, NoRespondersError) === undefined
      ? String(error instanceof Error ? error.message : error)
      : 'no stream responded';
  return new UnavailableError(
    'BUS_DELIVERY_FAILED',
    `NATS did not accept message ${eventId}: ${why}.`,
    { event_id: eventId },
    { cause: error },
  );
}

function withoutPassword(server: string): string {
  return server.slice(server.lastIndexOf('@') + 1);
}
