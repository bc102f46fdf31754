import type { SignedToken, Signer } from '../keys/signer.ts';
import { AUDIT } from '../services/names.ts';
import { parseToken, readClaims } from './parse-token.ts';
import { CHECKPOINT_READER } from './read-signed-head.ts';
import type { Claims, ClaimsInit } from './token-kinds.ts';
import type { VerifiedToken, Verifier } from './verifier.ts';

/** Lifetime of a checkpoint, ms. Readers accept expired checkpoints, but every token has an expiry. */
const CHECKPOINT_TTL_MS = 10 * 365 * 24 * 60 * 60 * 1000;

/** Signs the head of an audit chain (SV-8). `signer` is the supervisor's. */
export function mintCheckpoint(
  signer: Signer,
  claims: ClaimsInit<'checkpoint'>,
): Promise<SignedToken> {
  return signer.sign('checkpoint', { audience: AUDIT, claims, ttlMs: CHECKPOINT_TTL_MS });
}

/**
 * Verifies a checkpoint of any age, even if its key was retired after signing (SV-8).
 * @throws UnauthenticatedError TOKEN_INVALID; UnavailableError KEYS_UNAVAILABLE
 */
export function readCheckpoint(
  verifier: Verifier,
  token: string,
): Promise<VerifiedToken<'checkpoint'>> {
  return verifier.verify('checkpoint', token, CHECKPOINT_READER);
}

/**
 * Parses a checkpoint without verifying its signature, so that a caller can select the checkpoints to verify. The
 * result must not be trusted.
 * @throws UnauthenticatedError TOKEN_INVALID
 */
export function parseCheckpoint(token: string): Claims<'checkpoint'> {
  return readClaims('checkpoint', parseToken('checkpoint', token).payload);
}
