import { Code, ConnectError } from '@connectrpc/connect';
import {
  BadRequestSchema,
  ErrorInfoSchema,
  RetryInfoSchema,
} from '@writ/contracts/google/rpc/error_details_pb';
import { isWritError, type WritError, wrapUnknown } from '@writ/kernel';
import { isLostConnection, rejectedCertificate } from './connection-errors.ts';
import { type CalledPeer, errorOf, statusOf } from './error-details.ts';

/**
 * Converts a thrown error to a ConnectError with the same details as over gRPC (SYS-3). An error that
 * is not a named error becomes INTERNAL without its message.
 */
export function toConnectError(error: unknown): ConnectError {
  const { code, message, info, badRequest, retryInfo } = statusOf(wrapUnknown(error));
  return new ConnectError(message, code, undefined, [
    { desc: ErrorInfoSchema, value: info },
    ...(badRequest === undefined ? [] : [{ desc: BadRequestSchema, value: badRequest }]),
    ...(retryInfo === undefined ? [] : [{ desc: RetryInfoSchema, value: retryInfo }]),
  ]);
}

/** Converts an error of a Connect client to its named error (SYS-3). */
export function fromConnectError(error: unknown, peer: CalledPeer = {}): WritError {
  if (isWritError(error)) return error;
  const thrown = ConnectError.from(error);
  const rejected = rejectedCertificate(thrown);
  if (rejected !== undefined) return rejected;
  const [info] = thrown.findDetails(ErrorInfoSchema);
  const [badRequest] = thrown.findDetails(BadRequestSchema);
  return errorOf(
    {
      code: info === undefined && isLostConnection(thrown) ? Code.Unavailable : thrown.code,
      message: thrown.rawMessage,
      ...(info === undefined ? {} : { info }),
      ...(badRequest === undefined ? {} : { badRequest }),
    },
    peer,
  );
}
