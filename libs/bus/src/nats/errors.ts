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

/** Finds an error of a kind among an error and its causes. */
function causeOf<T>(error: unknown, kind: abstract new (...args: never[]) => T): T | undefined {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    if (cause instanceof kind) return cause;
  }
  return undefined;
}

/** The answer of JetStream that an error carries, if it is one. */
export function apiErrorOf(error: unknown): JetStreamApiError | undefined {
  return causeOf(error, JetStreamApiError);
}

/** What the server did not let these credentials do. */
function forbidden(error: unknown): PermissionDeniedError | undefined {
  const violation = causeOf(error, PermissionViolationError);
  if (violation === undefined) return undefined;
  const { operation, subject } = violation;
  return new PermissionDeniedError(
    'BUS_PERMISSION_DENIED',
    `The NATS credentials allow no ${operation} of ${subject}.`,
    { subject },
    { cause: error },
  );
}

/** Names why the server could not be reached or spoken with. */
export function connectionError(error: unknown, servers: readonly string[]): WritError {
  if (isWritError(error)) return error;
  const denied = forbidden(error);
  if (denied !== undefined) return denied;
  const where = servers.map(withoutPassword).join(', ');
  if (causeOf(error, AuthorizationError) !== undefined) {
    return new UnauthenticatedError(
      'BUS_CREDENTIALS_REJECTED',
      `The NATS server at ${where} does not take these credentials.`,
      {},
      { cause: error },
    );
  }
  const why = error instanceof Error ? error.message : String(error);
  return new UnavailableError(
    'BUS_UNREACHABLE',
    `The NATS server at ${where} does not answer: ${why}.`,
    {},
    { cause: error },
  );
}

/** Names why a message was not taken. */
export function publishError(error: unknown, eventId: string): WritError {
  if (isWritError(error)) return error;
  const denied = forbidden(error);
  if (denied !== undefined) return denied;
  if (causeOf(error, InvalidArgumentError)?.message.includes('max_payload') === true) {
    return new InvalidRequestError(
      'BUS_MESSAGE_TOO_LARGE',
      `The message ${eventId} is larger than the NATS server takes.`,
      { event_id: eventId },
      { cause: error },
    );
  }
  const why =
    causeOf(error, NoRespondersError) === undefined
      ? String(error instanceof Error ? error.message : error)
      : 'no stream answers';
  return new UnavailableError(
    'BUS_DELIVERY_FAILED',
    `The message ${eventId} was not taken by NATS: ${why}.`,
    { event_id: eventId },
    { cause: error },
  );
}

function withoutPassword(server: string): string {
  return server.slice(server.lastIndexOf('@') + 1);
}
