import { createPrivateKey, type KeyObject, sign } from 'node:crypto';
import { calculateJwkThumbprint, importJWK } from 'jose';

/** A public key in the form that verifying takes. */
export type Key = CryptoKey;

/** The id of a public key: its RFC 7638 thumbprint. */
export function keyIdOf(x: string): Promise<string> {
  return calculateJwkThumbprint({ kty: 'OKP', crv: 'Ed25519', x });
}

/** The public key with the part `x`. Rejects when there is none such. */
export function publicKey(x: string): Promise<Key> {
  return importKey({ x });
}

/** The private key with the parts `x` and `d`. Throws when there is none such. */
export function privateKey(x: string, d: string): KeyObject {
  return createPrivateKey({ key: { kty: 'OKP', crv: 'Ed25519', x, d }, format: 'jwk' });
}

/**
 * A compact JWS, signed at once: jose signs on another thread, for which a review would have to wait
 * inside of its transaction (docs/adr/0008).
 */
export function signCompact(header: object, payload: object, key: KeyObject): string {
  const signed = `${encoded(header)}.${encoded(payload)}`;
  return `${signed}.${sign(null, Buffer.from(signed), key).toString('base64url')}`;
}

function encoded(part: object): string {
  return Buffer.from(JSON.stringify(part)).toString('base64url');
}

/** Curve and type are set here and never taken from the caller, so no other algorithm gets in. */
async function importKey(parts: { readonly x: string }): Promise<Key> {
  const key = await importJWK({ kty: 'OKP', crv: 'Ed25519', ...parts }, 'EdDSA');
  if (key instanceof Uint8Array) throw new TypeError('An Ed25519 key cannot be symmetric.');
  return key;
}
