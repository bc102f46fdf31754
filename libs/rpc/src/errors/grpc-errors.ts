import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { anyPack, anyUnpack } from '@bufbuild/protobuf/wkt';
import { Metadata, status } from '@grpc/grpc-js';
import {
  BadRequestSchema,
  ErrorInfoSchema,
  RetryInfoSchema,
} from '@writ/contracts/google/rpc/error_details_pb';
import { type Status, StatusSchema } from '@writ/contracts/google/rpc/status_pb';
import { isWritError, OverloadedError, type WritError, wrapUnknown } from '@writ/kernel';
import { isLostStream, type SentStatus } from '../grpc-js-internals.ts';
import { type CalledPeer, type ErrorStatus, errorOf, statusOf } from './error-details.ts';
import { isUnsent, UnsentCallError } from './unsent-call.ts';

const DETAILS_KEY = 'grpc-status-details-bin';

/** A gRPC status as grpc-js sends it. */
export interface GrpcStatus {
  readonly code: number;
  readonly details: string;
  readonly metadata: Metadata;
}

/**
 * Converts a thrown error to a gRPC status: code, message, and ErrorInfo (with BadRequest for invalid
 * fields, and RetryInfo for errors with `retry_after_ms`) in `grpc-status-details-bin` (SYS-3). An error that
 * is not a named error becomes INTERNAL without its message.
 */
export function toGrpcStatus(error: unknown): GrpcStatus {
  const { code, message, info, badRequest, retryInfo } = statusOf(wrapUnknown(error));
  const status = create(StatusSchema, {
    code,
    message,
    details: [
      anyPack(ErrorInfoSchema, info),
      ...(badRequest === undefined ? [] : [anyPack(BadRequestSchema, badRequest)]),
      ...(retryInfo === undefined ? [] : [anyPack(RetryInfoSchema, retryInfo)]),
    ],
  });
  const metadata = new Metadata();
  metadata.set(DETAILS_KEY, Buffer.from(toBinary(StatusSchema, status)));
  return { code, details: message, metadata };
}

/**
 * Adds details to a status that grpc-js creates, such as the status for a message over the size limit, so that every
 * error contains ErrorInfo (SYS-3).
 */
export function withDetails(sent: SentStatus): SentStatus {
  const { code, details, metadata } = sent;
  const hasDetails = (metadata?.get(DETAILS_KEY) ?? []).length > 0;
  if (code === status.OK || code === null || code === undefined || hasDetails) return sent;
  const message = details ?? '';
  return toGrpcStatus(
    code === status.RESOURCE_EXHAUSTED
      ? new OverloadedError('MESSAGE_TOO_LARGE', message)
      : errorOf({ code, message }),
  );
}

/**
 * Converts an error of grpc-js to its named error: the error that the server threw, or the error of the status code
 * (UNAVAILABLE, DEADLINE_EXCEEDED, …) when the status has no details (SYS-3). A stream that was lost with its
 * connection becomes UNAVAILABLE. A call that this client did not send fails with {@link UnsentCallError}.
 *
 * @param peer the called method and address, for the message of a status without details
 */
export function fromGrpcError(error: unknown, peer: CalledPeer = {}): WritError {
  if (isWritError(error) || !isServiceError(error)) return wrapUnknown(error);
  const details = detailsOf(error.metadata);
  const isLost = details === undefined && isLostStream(error);
  const code = isLost ? status.UNAVAILABLE : error.code;
  const named = errorOf(
    { code, message: details?.message || error.details, ...unpack(details) },
    peer,
  );
  if (!isUnsent(error.metadata)) return named;
  return new UnsentCallError('UNAVAILABLE', named.message, named.metadata);
}

interface ServiceErrorShape {
  readonly code: number;
  readonly details: string;
  readonly metadata?: Metadata;
}

function isServiceError(error: unknown): error is ServiceErrorShape {
  return (
    typeof error === 'object' &&
    error !== null &&
    'code' in error &&
    typeof error.code === 'number' &&
    'details' in error &&
    typeof error.details === 'string'
  );
}

function detailsOf(metadata: Metadata | undefined): Status | undefined {
  const [bytes] = metadata?.get(DETAILS_KEY) ?? [];
  if (!(bytes instanceof Uint8Array)) return undefined;
  try {
    return fromBinary(StatusSchema, bytes);
  } catch {
    // The code is enough when the details cannot be decoded.
    return undefined;
  }
}

function unpack(status: Status | undefined): Pick<ErrorStatus, 'info' | 'badRequest'> {
  let found: Pick<ErrorStatus, 'info' | 'badRequest'> = {};
  for (const detail of status?.details ?? []) {
    try {
      const info = anyUnpack(detail, ErrorInfoSchema);
      if (info !== undefined) found = { ...found, info };
      const badRequest = anyUnpack(detail, BadRequestSchema);
      if (badRequest !== undefined) found = { ...found, badRequest };
    } catch {
      // A detail that cannot be decoded must not hide the error.
    }
  }
  return found;
}
