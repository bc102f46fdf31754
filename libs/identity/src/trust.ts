import { isWritError, UnavailableError } from '@writ/kernel';
import { type Key, publicKey } from './ed25519.ts';
import type { ServiceName } from './names.ts';
import type { PublicKey, Signer } from './signer.ts';

/** A public key whose owner vouches for it. */
export interface TrustedKey {
  readonly key: Key;
  /** Until when signatures with it count. */
  readonly notAfter: Date | undefined;
}

/** Whose signatures count: finds the keys of the services. */
export interface Trust {
  /**
   * The key `keyId` of `issuer`; undefined when that service has none such.
   * @throws UnavailableError KEYS_UNAVAILABLE when it cannot be told now (SYS-4)
   */
  key(issuer: ServiceName, keyId: string): Promise<TrustedKey | undefined>;
  /** Closes connections. */
  close(): void;
}

/** Trust in signers of this very process: for a service itself, for one-process tools and tests. */
export function trustSigners(...signers: readonly Signer[]): Trust {
  const keys = new Map(signers.map((signer) => [signer.service, signerKeys(signer)]));
  return {
    async key(issuer, keyId) {
      const find = keys.get(issuer);
      if (find === undefined) throw keysUnavailable(issuer, 'is not among the trusted services');
      return find(keyId);
    },
    close: () => undefined,
  };
}

/** Looks keys up in a signer at hand, so that a service need not call itself. */
export function signerKeys(signer: Signer): (keyId: string) => Promise<TrustedKey | undefined> {
  const imported = new Map<string, Key>();
  return async (keyId) => {
    const found = signer.publicKeys().find((key) => key.keyId === keyId);
    return found && trusted(found, imported);
  };
}

function trusted({ keyId, jwk, notAfter }: PublicKey, imported: Map<string, Key>): TrustedKey {
  const key = imported.get(keyId) ?? publicKey(jwk.x);
  imported.set(keyId, key);
  return { key, notAfter };
}

/** The error for keys that cannot be had now. */
export function keysUnavailable(
  issuer: ServiceName,
  why: string,
  cause?: unknown,
): UnavailableError {
  const detail = isWritError(cause) ? ` (${cause.reason})` : '';
  return new UnavailableError(
    'KEYS_UNAVAILABLE',
    `The keys of ${issuer} cannot be had: it ${why}${detail}.`,
    { service: issuer },
    { cause },
  );
}
