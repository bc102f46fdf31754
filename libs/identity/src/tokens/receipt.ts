import { InvalidRequestError, isWritError, newId } from '@writ/kernel';
import { LONGEST_TTL_MS, type SignedToken, type Signer } from '../keys/signer.ts';
import type { ClaimsInit } from './token-kinds.ts';
import type { VerifiedToken, Verifier } from './verifier.ts';

/**
 * Mints a receipt with the supervisor as its audience; its `jti` is the receipt id (TG-8). It expires after
 * 30 days, so that it is still valid after a long outage of the supervisor. `signer` is the gateway's.
 * @throws InvalidRequestError TOKEN_TOO_LARGE when the result fields do not fit into a receipt, INVALID_CLAIMS
 */
export function mintReceipt(
  signer: Signer,
  claims: ClaimsInit<'receipt'>,
  id: string = newId('rcpt'),
): Promise<SignedToken> {
  return signer.sign('receipt', { audience: 'supervisor', claims, ttlMs: LONGEST_TTL_MS, id });
}

/**
 * Verifies a receipt, which any service may deliver (TG-8). A receipt issued in the future by a wrong clock of the
 * gateway is accepted, because it permits no action (BD-3).
 * @throws InvalidRequestError RECEIPT_INVALID when it is malformed or expired, or the gateway did not sign it
 * @throws UnavailableError KEYS_UNAVAILABLE when the gateway's keys are unavailable (SYS-4)
 */
export async function readReceipt(
  verifier: Verifier,
  token: string,
): Promise<VerifiedToken<'receipt'>> {
  try {
    return await verifier.verify('receipt', token, {
      issuer: 'tool-gateway',
      audience: 'supervisor',
      allowEarly: true,
    });
  } catch (error) {
    if (!isWritError(error) || error.kind !== 'unauthenticated') throw error;
    throw new InvalidRequestError('RECEIPT_INVALID', error.message, error.metadata, {
      cause: error,
    });
  }
}
