import { InvalidRequestError, isWritError, newId } from '@writ/kernel';
import { LONGEST_TTL_MS, type SignedToken, type Signer } from './signer.ts';
import type { ClaimsInit } from './token-kinds.ts';
import type { VerifiedToken, Verifier } from './verifier.ts';

/**
 * Mints a receipt, for the supervisor alone; its `jti` is the receipt's id (TG-8). It lives 30
 * days, so that a supervisor that was away for long still takes it. `signer` is the gateway's.
 * @throws InvalidRequestError TOKEN_TOO_LARGE when the result fields are too much for a receipt
 */
export function mintReceipt(
  signer: Signer,
  claims: ClaimsInit<'receipt'>,
  id: string = newId('rcpt'),
): Promise<SignedToken> {
  return signer.sign('receipt', { audience: 'supervisor', claims, ttlMs: LONGEST_TTL_MS, id });
}

/**
 * Reads a receipt, whoever carried it (TG-8).
 * @throws InvalidRequestError RECEIPT_INVALID: the gateway did not sign this
 * @throws UnavailableError KEYS_UNAVAILABLE when the gateway's keys cannot be had (SYS-4)
 */
export async function readReceipt(
  verifier: Verifier,
  token: string,
): Promise<VerifiedToken<'receipt'>> {
  try {
    return await verifier.verify('receipt', token, {
      issuer: 'tool-gateway',
      audience: 'supervisor',
    });
  } catch (error) {
    if (!isWritError(error) || error.kind !== 'unauthenticated') throw error;
    throw new InvalidRequestError('RECEIPT_INVALID', error.message, error.metadata, {
      cause: error,
    });
  }
}
