import { AUDIT } from './names.ts';
import type { SignedToken, Signer } from './signer.ts';
import type { ClaimsInit } from './token-kinds.ts';
import type { VerifiedToken, Verifier } from './verifier.ts';

/** Life of a checkpoint, in milliseconds. It never stops to be read, but a token has to expire. */
const CHECKPOINT_TTL_MS = 10 * 365 * 24 * 60 * 60 * 1000;

/** Signs the head of an audit chain (SV-8). `signer` is the supervisor's. */
export function mintCheckpoint(
  signer: Signer,
  claims: ClaimsInit<'checkpoint'>,
): Promise<SignedToken> {
  return signer.sign('checkpoint', { audience: AUDIT, claims, ttlMs: CHECKPOINT_TTL_MS });
}

/**
 * Reads a checkpoint, however old (SV-8): a key that has been retired since still proves it.
 * @throws UnauthenticatedError TOKEN_INVALID
 */
export function readCheckpoint(
  verifier: Verifier,
  token: string,
): Promise<VerifiedToken<'checkpoint'>> {
  return verifier.verify('checkpoint', token, {
    issuer: 'supervisor',
    audience: AUDIT,
    allowExpired: true,
  });
}
