import { InvalidRequestError } from '@writ/kernel';

/** The error for a call id that was used for another request. */
export function callIdReused(callId: string): InvalidRequestError {
  return new InvalidRequestError(
    'CALL_ID_REUSED',
    `call_id ${callId} was used before, for another request.`,
    { field: 'call_id', call_id: callId },
  );
}

/** The error for a request id that was used for another request. */
export function requestIdReused(field = 'request_id'): InvalidRequestError {
  return new InvalidRequestError(
    'REQUEST_ID_REUSED',
    `${field} was used before, for another request.`,
    { field },
  );
}
