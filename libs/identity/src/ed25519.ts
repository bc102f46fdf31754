import { createPrivateKey, createPublicKey, type KeyObject, sign, verify } from 'node:crypto';
import { calculateJwkThumbprint } from 'jose';

/** A public key in the form that verifying takes. */
export type Key = KeyObject;

/** The id of a public key: its RFC 7638 thumbprint. */
export function keyIdOf(x: string): Promise<string> {
  return calculateJwkThumbprint({ kty: 'OKP', crv: 'Ed25519', x });
}

/**
 * The public key with the part `x`. Curve and type are set here and never taken from the caller, so no
 * other algorithm gets in. Throws when there is none such.
 */
export function publicKey(x: string): Key {
  return createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' });
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

/**
 * Whether the signature of a compact JWS fits, told at once: jose would ask another thread. What the
 * header says was looked at before (`parseToken`): it names nothing that changes what is signed.
 */
export function isSigned(token: string, key: Key): boolean {
  const end = token.lastIndexOf('.');
  const signature = Buffer.from(token.slice(end + 1), 'base64url');
  return verify(null, Buffer.from(token.slice(0, end)), key, signature);
}

function encoded(part: object): string {
  return Buffer.from(JSON.stringify(part)).toString('base64url');
}
