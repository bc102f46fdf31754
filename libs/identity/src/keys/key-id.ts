import { calculateJwkThumbprint } from 'jose';

/** Returns the id of a public key, its RFC 7638 thumbprint. */
export function keyIdOf(x: string): Promise<string> {
  return calculateJwkThumbprint({ kty: 'OKP', crv: 'Ed25519', x });
}
