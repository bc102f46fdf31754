import { InvalidRequestError, isJsonObject, type JsonValue } from '@writ/kernel';
import type { ServiceName } from '../services/names.ts';
import { keyIdOf, publicKey } from './ed25519.ts';
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
  const keys = new Map<string, TrustedKey>();
  for (const jwk of keysIn(jwks)) {
    const [keyId, trusted] = await readKey(jwk);
    keys.set(keyId, trusted);
  }
  return {
    async key(requested, keyId) {
      if (requested !== issuer)
        throw keysUnavailable(requested, 'it is not the service of these keys');
      return keys.get(keyId);
    },
    close: () => undefined,
  };
}

function keysIn(jwks: string): readonly JsonValue[] {
  let value: JsonValue;
  try {
    value = JSON.parse(jwks);
  } catch {
    // The parser's message quotes the text, which may contain a private key.
    throw badKeys('they are not JSON');
  }
  if (isJsonObject(value) && value.kty !== undefined) return [value];
  if (isJsonObject(value) && Array.isArray(value.keys) && value.keys.length > 0) return value.keys;
  throw badKeys('they are not a JSON Web Key Set with at least one key');
}

async function readKey(jwk: JsonValue): Promise<readonly [string, TrustedKey]> {
  if (!isJsonObject(jwk) || jwk.kty !== 'OKP' || jwk.crv !== 'Ed25519') {
    throw badKeys('one of them is not an Ed25519 key');
  }
  const { x, kid, not_after: until } = jwk;
  if (typeof x !== 'string' || !/^[A-Za-z0-9_-]{43}$/.test(x)) {
    throw badKeys('the x of one of them is not 32 bytes');
  }
  const keyId = await keyIdOf(x);
  if (kid !== undefined && kid !== keyId) throw badKeys('the kid of one is not its thumbprint');
  const notAfter = until === undefined ? undefined : new Date(String(until));
  if (Number.isNaN(notAfter?.getTime())) throw badKeys('the not_after of one is not a time');
  return [keyId, { key: publicKey(x), notAfter }];
}

function badKeys(why: string): InvalidRequestError {
  return new InvalidRequestError('INVALID_PUBLIC_KEYS', `The public keys are invalid: ${why}.`);
}
