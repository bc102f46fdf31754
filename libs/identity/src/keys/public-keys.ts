import type { ServiceName } from '../services/names.ts';
import { publicKey } from './ed25519.ts';
import { readPublicKeys } from './read-public-keys.ts';
import type { PublicKey } from './signer.ts';
import { keysUnavailable, type Trust, type TrustedKey } from './trust.ts';

/**
 * Formats the public keys of a service as a JSON Web Key Set for offline verification, with the validity
 * times of each key.
 */
export function formatPublicKeys(keys: readonly PublicKey[]): string {
  const jwks = keys.map(({ keyId, jwk, notBefore, notAfter }) => ({
    ...jwk,
    alg: 'EdDSA',
    use: 'sig',
    kid: keyId,
    not_before: notBefore.toISOString(),
    ...(notAfter && { not_after: notAfter.toISOString() }),
  }));
  return `${JSON.stringify({ keys: jwks }, null, 2)}\n`;
}

/**
 * Creates offline trust in the public keys of one service, from a JSON Web Key Set, such as the output of
 * {@link formatPublicKeys} or a key file, or from a single JSON Web Key. Private parts are ignored.
 * @throws InvalidRequestError INVALID_PUBLIC_KEYS naming the problem
 */
export async function trustPublicKeys(issuer: ServiceName, jwks: string): Promise<Trust> {
  const read = await readPublicKeys(jwks);
  const keys = new Map<string, TrustedKey>(
    [...read].map(([keyId, { x, notAfter }]) => [keyId, { key: publicKey(x), notAfter }]),
  );
  return {
    async key(requested, keyId) {
      if (requested !== issuer)
        throw keysUnavailable(requested, 'the given public keys belong to another service');
      return keys.get(keyId);
    },
    close: () => undefined,
  };
}
