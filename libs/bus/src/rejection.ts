import { InvalidRequestError } from '@writ/kernel';

/** Whether a handler rejected its message as invalid, so that every redelivery would fail in the same way. */
export function isRejection(error: unknown): boolean {
  return error instanceof InvalidRequestError;
}
