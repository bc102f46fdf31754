import { readPublicKeys } from '../keys/read-public-keys.ts';
import { AUDIT } from '../services/names.ts';
import { checkToken, issuersOf, judgeToken, type VerifyOptions } from './check-token.ts';
import { type Claims, DEFAULT_CLOCK_LEEWAY_MS } from './token-kinds.ts';

/** Options for verifying a checkpoint of any age, even if its key was retired after signing (SV-8). */
export const CHECKPOINT_READER: VerifyOptions = {
  issuer: 'supervisor',
  audience: AUDIT,
  allowExpired: true,
};

/** Returns the claims of a checkpoint, with counts as numbers, and the time of its signature. */
export function signedHeadOf(claims: Claims<'checkpoint'>, signedAt: Date) {
  const { tenant, headHash, closesExport } = claims;
  return {
    tenant,
    count: Number(claims.count),
    headHash,
    previousCount: Number(claims.previousCount),
    checkpointNumber: Number(claims.checkpointNumber),
    closesExport,
    signedAt,
  };
}

/**
 * Returns a function that verifies checkpoints with the supervisor's public keys. It uses no Node.js modules.
 * `isSigned` verifies the Ed25519 signature of a compact JWS under the key with coordinate `x`.
 * @throws InvalidRequestError INVALID_PUBLIC_KEYS; UnauthenticatedError TOKEN_INVALID (from the reader)
 */
export async function createHeadReader(
  jwks: string,
  isSigned: (token: string, x: string) => Promise<boolean>,
) {
  const keys = await readPublicKeys(jwks);
  return async (signed: string) => {
    const now = Date.now();
    const checked = await checkToken('checkpoint', signed, {
      issuers: issuersOf('checkpoint', CHECKPOINT_READER),
      now,
      keyOf: async (_, keyId) => {
        const key = keys.get(keyId);
        return key && { notAfter: key.notAfter, isSigned: () => isSigned(signed, key.x) };
      },
    });
    const times = { now, leewayMs: DEFAULT_CLOCK_LEEWAY_MS, expiryNow: now };
    const { claims, issueTime } = judgeToken('checkpoint', checked, CHECKPOINT_READER, times);
    return signedHeadOf(claims, issueTime);
  };
}
