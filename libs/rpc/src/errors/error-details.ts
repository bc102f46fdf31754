import { create, type MessageShape } from '@bufbuild/protobuf';
import { durationFromMs } from '@bufbuild/protobuf/wkt';
import {
  type BadRequest,
  BadRequestSchema,
  type ErrorInfo,
  ErrorInfoSchema,
  type RetryInfo,
  RetryInfoSchema,
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

/** The domain of every ErrorInfo of Writ (SYS-3). */
const ERROR_DOMAIN = 'writ';

/** Status and details must fit into HTTP/2 headers; some peers accept only 8 KiB. */
const MAX_MESSAGE_CHARACTERS = 2048;
/** Maximum length of a percent-encoded text; one Chinese character becomes nine characters. */
const MAX_ENCODED_CHARACTERS = 3072;
const ELLIPSIS = '…';

/** An error on the wire, independent of the transport. */
export interface ErrorStatus {
  readonly code: number;
  readonly message: string;
  readonly info?: ErrorInfo;
  readonly badRequest?: BadRequest;
  /** When a retry may succeed; sent for errors with `retry_after_ms`. */
  readonly retryInfo?: RetryInfo;
}

/** The called method and address, for errors that have only a status. */
export interface CalledPeer {
  readonly method?: string;
  readonly address?: string;
}

/** Converts `error` to its form on the wire (SYS-3). */
export function statusOf(
  error: WritError,
): Required<Omit<ErrorStatus, 'badRequest' | 'retryInfo'>> & ErrorStatus {
  return {
    code: statusCode(error.kind),
    message: truncate(error.message),
    info: create(ErrorInfoSchema, {
      domain: ERROR_DOMAIN,
      reason: error.reason,
      metadata: { ...error.metadata },
    }),
    ...(error instanceof InvalidFieldsError
      ? {
          badRequest: create(BadRequestSchema, {
            fieldViolations: error.violations.map(({ field, description }) => ({
              field: truncate(field),
              description: truncate(description),
            })),
          }),
        }
      : {}),
    ...retryInfoOf(error.metadata),
  };
}

/** The standard form of `retry_after_ms`, which clients of any library understand. */
function retryInfoOf({ retry_after_ms: ms }: ErrorMetadata): Pick<ErrorStatus, 'retryInfo'> {
  if (ms === undefined || !/^\d{1,12}$/.test(ms)) return {};
  return { retryInfo: create(RetryInfoSchema, { retryDelay: durationFromMs(Number(ms)) }) };
}

/**
 * Shortens a text to `limit` characters, and to {@link MAX_ENCODED_CHARACTERS} with percent-encoding. Lone surrogates
 * are not allowed in headers: grpc-js would throw while sending.
 */
export function truncate(text: string, limit = MAX_MESSAGE_CHARACTERS): string {
  const sendable = text.toWellFormed();
  if (sendable.length <= limit && encodeURI(sendable).length <= MAX_ENCODED_CHARACTERS) {
    return sendable;
  }
  let start = '';
  let left = MAX_ENCODED_CHARACTERS - encodeURI(ELLIPSIS).length;
  for (const character of sendable) {
    left -= encodeURI(character).length;
    if (left < 0 || start.length + character.length >= limit) break;
    start += character;
  }
  return `${start}${ELLIPSIS}`;
}

/**
 * Converts a status to its named error (SYS-3). If the details are Writ's, this is the error that the server threw.
 * Otherwise it is an error of the kind to which the code maps, with the status name of this kind as reason:
 * INVALID_ARGUMENT for OUT_OF_RANGE, INTERNAL for UNKNOWN.
 */
export function errorOf(status: ErrorStatus, peer: CalledPeer = {}): WritError {
  const kind = errorKind(status.code);
  if (status.info?.domain === ERROR_DOMAIN) {
    const { reason, metadata } = status.info;
    return rebuild({ kind, reason, message: status.message, metadata }, status);
  }
  const metadata: Record<string, string> = {};
  if (peer.method !== undefined) metadata.method = peer.method;
  if (peer.address !== undefined) metadata.address = peer.address;
  const called = [peer.method, peer.address].filter((part) => part !== undefined).join(' at ');
  const sentence = status.message || statusName(status.code);
  return rebuild(
    {
      kind,
      reason: kind === 'internal' ? 'INTERNAL' : statusName(statusCode(kind)),
      message: called === '' ? sentence : `${called}: ${sentence}`,
      metadata: kind === 'cancelled' ? { cancel_reason: sentence, ...metadata } : metadata,
    },
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

/** The parts of an error from which it is rebuilt. */
interface ErrorContent {
  readonly kind: ErrorKind;
  readonly reason: string;
  readonly message: string;
  readonly metadata: ErrorMetadata;
}

function rebuild(
  { kind, reason, message, metadata }: ErrorContent,
  { badRequest }: ErrorStatus,
): WritError {
  // A peer of another release may send a reason code that this release does not know; the code is kept unchanged.
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
  if (kind === 'invalid_argument' && badRequest !== undefined) {
    return new InvalidFieldsError(
      violationsOf(badRequest),
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
