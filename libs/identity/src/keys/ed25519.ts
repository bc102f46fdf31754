import { createPrivateKey, createPublicKey, hash, type KeyObject, sign, verify } from 'node:crypto';

/** A public key for signature verification. */
export type Key = KeyObject;

/**
 * Creates the public key with coordinate `x`. Curve and type are fixed, so that no other algorithm is
 * accepted. Throws when `x` is invalid.
 */
export function publicKey(x: string): Key {
  return createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' });
}

/** Creates the private key with the parts `x` and `d`. Throws when they are invalid. */
export function privateKey(x: string, d: string): KeyObject {
  return createPrivateKey({ key: { kty: 'OKP', crv: 'Ed25519', x, d }, format: 'jwk' });
}

/** Maximum cached valid signatures; each uses about 150 bytes. */
const MAX_CACHED = 10_000;

/**
 * SHA-256 of public key and token, for tokens that this process has signed or has verified with that key. An entry
 * proves only that the signature is valid. The caller checks each time whether the key is trusted, whether the token
 * has expired, and its audience (CO-1).
 */
const validSignatures = new Set<string>();

/** The public part of each key, cached because reading it from a KeyObject requires an export. */
const publicParts = new WeakMap<KeyObject, string>();

/**
 * Signs a compact JWS synchronously: jose signs on another thread, which would make a review wait inside
 * its transaction (docs/adr/0008).
 */
export function signCompact(header: object, payload: object, key: KeyObject): string {
  const signed = `${encoded(header)}.${encoded(payload)}`;
  const token = `${signed}.${sign(null, Buffer.from(signed), key).toString('base64url')}`;
  cache(signatureId(token, key));
  return token;
}

/**
 * Whether the signature of a compact JWS is valid under `key`. Valid signatures are cached per token and key.
 * `parseToken` has already rejected header fields that change what the signature covers, such as `b64`.
 */
export function isSigned(token: string, key: Key): boolean {
  const id = signatureId(token, key);
  if (validSignatures.has(id)) return true;
  const end = token.lastIndexOf('.');
  const signature = Buffer.from(token.slice(end + 1), 'base64url');
  const isValid = verify(null, Buffer.from(token.slice(0, end)), key, signature);
  if (isValid) cache(id);
  return isValid;
}

function cache(id: string): void {
  validSignatures.add(id);
  if (validSignatures.size <= MAX_CACHED) return;
  const [oldest] = validSignatures;
  if (oldest !== undefined) validSignatures.delete(oldest);
}

function signatureId(token: string, key: KeyObject): string {
  return hash('sha256', `${publicPart(key)} ${token}`, 'base64');
}

function publicPart(key: KeyObject): string {
  const known = publicParts.get(key);
  if (known !== undefined) return known;
  const publicKey = key.type === 'public' ? key : createPublicKey(key);
  const { x } = publicKey.export({ format: 'jwk' });
  if (x === undefined) throw new TypeError('The key is not an Ed25519 key.');
  publicParts.set(key, x);
  return x;
}

function encoded(part: object): string {
  return Buffer.from(JSON.stringify(part)).toString('base64url');
}
