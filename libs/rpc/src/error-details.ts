import { create, type MessageShape } from '@bufbuild/protobuf';
import {
  type BadRequest,
  BadRequestSchema,
  type ErrorInfo,
  ErrorInfoSchema,
} from '@writ/contracts/google/rpc/error_details_pb';
import {
  AlreadyExistsError,
  BudgetExhaustedError,
  CancellationError,
  ConflictError,
  DataLossError,
  DeadlineError,
  type ErrorKind,
  type ErrorMetadata,
  InternalError,
  InvalidRequestError,
  NotFoundError,
  NotImplementedError,
  OverloadedError,
  PermissionDeniedError,
  PreconditionError,
  type ReasonOf,
  UnauthenticatedError,
  UnavailableError,
  type WritError,
} from '@writ/kernel';
import { InvalidFieldsError } from './invalid-fields-error.ts';
import { errorKind, statusCode, statusName } from './status-code.ts';

/** The domain of every ErrorInfo that Writ makes (SYS-3). */
const ERROR_DOMAIN = 'writ';

/** Status and details must fit into HTTP/2 headers, where peers accept as little as 8 KiB. */
const MAX_MESSAGE_CHARACTERS = 2048;

/** An error as it crosses the wire, whatever the transport. */
export interface ErrorStatus {
  readonly code: number;
  readonly message: string;
  readonly info?: ErrorInfo;
  readonly badRequest?: BadRequest;
}

/** Who was called, for errors that tell only a status. */
export interface CalledPeer {
  readonly method?: string;
  readonly address?: string;
}

/** What `error` looks like on the wire (SYS-3). */
export function statusOf(
  error: WritError,
): Required<Omit<ErrorStatus, 'badRequest'>> & ErrorStatus {
  return {
    code: statusCode(error.kind),
    message: shortened(error.message),
    info: create(ErrorInfoSchema, {
      domain: ERROR_DOMAIN,
      reason: error.reason,
      metadata: { ...error.metadata },
    }),
    ...(error instanceof InvalidFieldsError
      ? {
          badRequest: create(BadRequestSchema, {
            fieldViolations: error.violations.map((violation) => ({ ...violation })),
          }),
        }
      : {}),
  };
}

/** Lone surrogates cannot be sent in headers at all: grpc-js would throw while sending. */
function shortened(message: string): string {
  const sendable = message.toWellFormed();
  return sendable.length <= MAX_MESSAGE_CHARACTERS
    ? sendable
    : `${sendable.slice(0, MAX_MESSAGE_CHARACTERS - 1).toWellFormed()}…`;
}

/**
 * The named error that a status stands for (SYS-3): the one that the server threw when the details
 * are Writ's, else the one for the bare code, with the code's name as reason.
 */
export function errorOf(status: ErrorStatus, peer: CalledPeer = {}): WritError {
  const kind = errorKind(status.code);
  if (status.info?.domain === ERROR_DOMAIN) {
    return rebuilt(kind, status.info.reason, status.message, status.info.metadata, status);
  }
  const metadata: Record<string, string> = {};
  if (peer.method !== undefined) metadata.method = peer.method;
  if (peer.address !== undefined) metadata.address = peer.address;
  const who = [peer.method, peer.address].filter((part) => part !== undefined).join(' at ');
  const sentence = status.message || statusName(status.code);
  return rebuilt(
    kind,
    kind === 'internal' ? 'INTERNAL' : statusName(statusCode(kind)),
    who === '' ? sentence : `${who}: ${sentence}`,
    kind === 'cancelled' ? { cancel_reason: sentence, ...metadata } : metadata,
    status,
  );
}

type RebuiltKind = Exclude<ErrorKind, 'cancelled'>;

type ErrorClass<K extends ErrorKind> = new (
  reason: ReasonOf<K>,
  message: string,
  metadata: ErrorMetadata,
) => WritError<K>;

const CLASSES: { readonly [K in RebuiltKind]: ErrorClass<K> } = {
  invalid_argument: InvalidRequestError,
  unauthenticated: UnauthenticatedError,
  permission_denied: PermissionDeniedError,
  not_found: NotFoundError,
  already_exists: AlreadyExistsError,
  failed_precondition: PreconditionError,
  resource_exhausted: OverloadedError,
  aborted: ConflictError,
  unavailable: UnavailableError,
  deadline_exceeded: DeadlineError,
  unimplemented: NotImplementedError,
  internal: InternalError,
  data_loss: DataLossError,
};

function rebuilt(
  kind: ErrorKind,
  reason: string,
  message: string,
  metadata: ErrorMetadata,
  status: ErrorStatus,
): WritError {
  // A peer of another release may send a code that this one lacks; it is passed on as it is.
  const code = reason as ReasonOf<RebuiltKind>;
  if (kind === 'cancelled') {
    return new CancellationError(metadata.cancel_reason ?? message, metadata);
  }
  const { dimension, used, limit } = metadata;
  if (
    reason === 'BUDGET_EXHAUSTED' &&
    dimension !== undefined &&
    used !== undefined &&
    limit !== undefined
  ) {
    return new BudgetExhaustedError({ dimension, used, limit, message, metadata });
  }
  if (kind === 'invalid_argument' && status.badRequest !== undefined) {
    return new InvalidFieldsError(
      violationsOf(status.badRequest),
      code as ReasonOf<'invalid_argument'>,
      message,
      metadata,
    );
  }
  return new (CLASSES[kind] as ErrorClass<ErrorKind>)(code, message, metadata);
}

function violationsOf(badRequest: MessageShape<typeof BadRequestSchema>) {
  return badRequest.fieldViolations.map(({ field, description }) => ({ field, description }));
}
