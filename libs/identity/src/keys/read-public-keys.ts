import { InvalidRequestError, isJsonObject, type JsonValue } from '@writ/kernel/portable';
import { keyIdOf } from './key-id.ts';

/** A public key of a JSON Web Key Set. */
export interface ReadPublicKey {
  /** Coordinate of the Ed25519 key, base64url. */
  readonly x: string;
  /** Expiry time of the key. */
  readonly notAfter: Date | undefined;
}

/**
 * Reads the Ed25519 keys of a JSON Web Key Set or of a single JSON Web Key, by key id. Private parts are ignored.
 * @throws InvalidRequestError INVALID_PUBLIC_KEYS naming the problem
 */
export async function readPublicKeys(jwks: string): Promise<ReadonlyMap<string, ReadPublicKey>> {
  return new Map(await Promise.all(keysIn(jwks).map(readKey)));
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

async function readKey(jwk: JsonValue): Promise<readonly [string, ReadPublicKey]> {
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
  return [keyId, { x, notAfter }];
}

function badKeys(why: string): InvalidRequestError {
  return new InvalidRequestError('INVALID_PUBLIC_KEYS', `The public keys are invalid: ${why}.`);
}
