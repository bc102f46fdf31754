import { calculateJwkThumbprint, importJWK } from 'jose';

/** A key in the form that signing and verifying take. */
export type Key = CryptoKey;

/** The id of a public key: its RFC 7638 thumbprint. */
export function keyIdOf(x: string): Promise<string> {
  return calculateJwkThumbprint({ kty: 'OKP', crv: 'Ed25519', x });
}

/** The public key with the part `x`. Rejects when there is none such. */
export function publicKey(x: string): Promise<Key> {
  return importKey({ x });
}

/** The private key with the parts `x` and `d`. Rejects when they do not belong together. */
export function privateKey(x: string, d: string): Promise<Key> {
  return importKey({ x, d });
}

/** Curve and type are set here and never taken from the caller, so no other algorithm gets in. */
async function importKey(parts: { x: string; d?: string }): Promise<Key> {
  const key = await importJWK({ kty: 'OKP', crv: 'Ed25519', ...parts }, 'EdDSA');
  if (key instanceof Uint8Array) throw new TypeError('An Ed25519 key cannot be symmetric.');
  return key;
}
