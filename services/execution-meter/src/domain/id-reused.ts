import { InvalidRequestError } from '@writ/kernel';

/** Returns the error for a call_id of a different request. */
export function callIdReused(callId: string): InvalidRequestError {
  return new InvalidRequestError(
    'CALL_ID_REUSED',
    `call_id ${callId} was already used for a different request.`,
    { field: 'call_id', call_id: callId },
  );
}

/** Returns the error for a request_id of a different request. */
export function requestIdReused(field = 'request_id'): InvalidRequestError {
  return new InvalidRequestError(
    'REQUEST_ID_REUSED',
    `${field} was already used for a different request.`,
    { field },
  );
}
