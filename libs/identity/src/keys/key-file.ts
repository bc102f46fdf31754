import { isJsonObject, type JsonObject, type JsonValue } from '@writ/kernel';
import { exportJWK, generateKeyPair } from 'jose';
import { keyIdOf } from './key-id.ts';
import { badFile, createPrivate, readPrivate, replacePrivate } from './private-file.ts';

/** One key of a key file. The first one signs; the others are retired. */
export interface StoredKey {
  readonly keyId: string;
  /** Public part, base64url. */
  readonly x: string;
  /** Private part, base64url; absent once retired. */
  readonly d?: string;
  readonly notBefore: Date;
  /** Expiry time of the key; absent for the signing key. */
  readonly notAfter?: Date;
}

/** The keys of a service, at least one; the signing key is first. */
export type StoredKeys = readonly [StoredKey & { readonly d: string }, ...StoredKey[]];

/** Generates an Ed25519 key; its id is its RFC 7638 thumbprint. */
export async function newKey(now: Date): Promise<StoredKey & { readonly d: string }> {
  const pair = await generateKeyPair('EdDSA', { crv: 'Ed25519', extractable: true });
  const { x = '', d = '' } = await exportJWK(pair.privateKey);
  return { keyId: await keyIdOf(x), x, d, notBefore: now };
}

/**
 * Reads the key file, or creates it on first start. If several processes start at the same time, one of them creates
 * it.
 * @throws InvalidRequestError INVALID_FILE when the file exists but is invalid. It is never recreated,
 * because tokens signed with the lost key would become invalid.
 */
export async function openKeyFile(file: string, now: Date): Promise<StoredKeys> {
  const text = readPrivate(file);
  if (text !== undefined) return parseKeys(file, text);
  createPrivate(file, formatKeys([await newKey(now)]));
  return readKeyFile(file);
}

/** Reads the key file. @throws InvalidRequestError INVALID_FILE */
export async function readKeyFile(file: string): Promise<StoredKeys> {
  const text = readPrivate(file);
  if (text === undefined) throw badFile(file, `does not exist; ${REMEDY}`);
  return parseKeys(file, text);
}

/** Replaces the key file atomically and durably. */
export function writeKeyFile(file: string, keys: StoredKeys): void {
  replacePrivate(file, formatKeys(keys));
}

const REMEDY =
  'restore it from a backup, or delete it to start with a new key, which invalidates all existing tokens';

function formatKeys(keys: StoredKeys): string {
  const jwks = keys.map((key) => ({
    kty: 'OKP',
    crv: 'Ed25519',
    alg: 'EdDSA',
    use: 'sig',
    kid: key.keyId,
    x: key.x,
    ...(key.d === undefined ? {} : { d: key.d }),
    not_before: key.notBefore.toISOString(),
    ...(key.notAfter === undefined ? {} : { not_after: key.notAfter.toISOString() }),
  }));
  return `${JSON.stringify({ keys: jwks }, null, 2)}\n`;
}

async function parseKeys(file: string, text: string): Promise<StoredKeys> {
  const keys = await Promise.all(listOfKeys(file, text).map((key) => parseKey(file, key)));
  const [first, ...rest] = keys;
  if (first === undefined) throw broken(file, 'it contains no key');
  const { d } = first;
  if (d === undefined) throw broken(file, 'its first key has no private part');
  if (new Set(keys.map((key) => key.keyId)).size !== keys.length)
    throw broken(file, 'it contains a key twice');
  return [{ ...first, d }, ...rest];
}

function listOfKeys(file: string, text: string): readonly JsonValue[] {
  let jwks: JsonValue;
  try {
    jwks = JSON.parse(text);
  } catch (error) {
    // The parser's message quotes the text, which contains the private key.
    throw broken(file, error instanceof SyntaxError ? 'it is not JSON' : 'it cannot be parsed');
  }
  if (isJsonObject(jwks) && Array.isArray(jwks.keys)) return jwks.keys;
  throw broken(file, 'it is not a JSON Web Key Set');
}

async function parseKey(file: string, jwk: JsonValue): Promise<StoredKey> {
  if (!isJsonObject(jwk) || jwk.kty !== 'OKP' || jwk.crv !== 'Ed25519')
    throw broken(file, 'one of its keys is not an Ed25519 key');
  const x = keyPart(file, jwk, 'x');
  const d = jwk.d === undefined ? undefined : keyPart(file, jwk, 'd');
  const keyId = await keyIdOf(x);
  if (jwk.kid !== keyId) throw broken(file, 'the kid of one of its keys is not its thumbprint');
  const notAfter = jwk.not_after === undefined ? undefined : time(file, jwk, 'not_after');
  return {
    keyId,
    x,
    ...(d === undefined ? {} : { d }),
    notBefore: time(file, jwk, 'not_before'),
    ...(notAfter === undefined ? {} : { notAfter }),
  };
}

function keyPart(file: string, jwk: JsonObject, field: 'x' | 'd'): string {
  const part = jwk[field];
  if (typeof part === 'string' && /^[A-Za-z0-9_-]{43}$/.test(part)) return part;
  throw broken(file, `the ${field} of one of its keys is not 32 bytes`);
}

function time(file: string, jwk: JsonObject, field: 'not_before' | 'not_after'): Date {
  const text = jwk[field];
  const date = new Date(typeof text === 'string' ? text : Number.NaN);
  if (!Number.isNaN(date.getTime())) return date;
  throw broken(file, `the ${field} of one of its keys is not a time`);
}

function broken(file: string, why: string): Error {
  return badFile(file, `is not a valid key file: ${why}; ${REMEDY}`);
}
