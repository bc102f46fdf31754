import { isWritError, type WritError } from '@writ/kernel';

/**
 * Maximum attempts of one call, the first included, while the service does not know the key that signed the
 * credentials.
 */
const ATTEMPTS = 10;

const REFUSALS = ['TOKEN_EXPIRED', 'TOKEN_INVALID', 'SLOT_GRANT_EXPIRED', 'SLOT_GRANT_REQUIRED'];

/**
 * Whether a refused call is attempted again with a new token or slot grant: once, because the token or grant may have
 * expired in transit, and up to ten attempts in total while the service does not know the signing key, because the
 * replicas of the issuer read a rotated key one after the other (SV-6).
 * @param attempt number of the attempt that was refused, from 1
 */
export function mayRenew(error: unknown, attempt: number): boolean {
  if (!isWritError(error) || !REFUSALS.includes(error.reason)) return false;
  return attempt === 1 || (isKeyUnknown(error) && attempt < ATTEMPTS);
}

/**
 * Whether a refused tool call may succeed with a new writ: the current writ has expired, or its signing key is not
 * known yet (TG-1).
 */
export function needsNewWrit(error: unknown): boolean {
  if (!isWritError(error)) return false;
  const { reason } = error;
  return reason === 'WRIT_EXPIRED' || (reason === 'WRIT_INVALID' && isKeyUnknown(error));
}

/** Whether the service does not know, or does not know yet, the key that signed a token, writ or receipt. */
export function isKeyUnknown({ metadata }: WritError): boolean {
  return metadata.check === 'kid';
}
