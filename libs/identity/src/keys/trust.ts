import { isWritError, UnavailableError } from '@writ/kernel';
import type { ServiceName } from '../services/names.ts';
import { type Key, publicKey } from './ed25519.ts';
import { POLL_INTERVAL_MS, type PublicKey, type Signer } from './signer.ts';

/** A trusted public key. */
export interface TrustedKey {
  readonly key: Key;
  /** Expiry time of the key. */
  readonly notAfter: Date | undefined;
}

/** Looks up the public keys of trusted services. */
export interface Trust {
  /** The tenants that are served only by a worker pool (SYS-6). Default: none. */
  readonly pooledTenants?: readonly string[];
  /**
   * Returns the key `keyId` of `issuer`; undefined when the service does not have it.
   * @param tenants the tenants that a worker token names; they select the worker pool that must have the key
   * @throws UnavailableError KEYS_UNAVAILABLE when the keys cannot be fetched (SYS-4)
   * @throws PermissionDeniedError TENANT_NOT_SERVED when the tenants do not all belong to the same pool
   */
  key(
    issuer: ServiceName,
    keyId: string,
    tenants?: readonly string[],
  ): Promise<TrustedKey | undefined>;
  /**
   * Fetches the keys of `issuer`, at most once per second. The response also contains the time of the issuer's clock
   * (BD-3).
   */
  refresh?(issuer: ServiceName): Promise<void>;
  /** Closes connections. */
  close(): void;
}

/** Creates trust in signers of this process, for the service itself, single-process tools and tests. */
export function trustSigners(...signers: readonly Signer[]): Trust {
  const keys = new Map(signers.map((signer) => [signer.service, signerKeys(signer)]));
  return {
    async key(issuer, keyId) {
      const find = keys.get(issuer);
      if (find === undefined) throw keysUnavailable(issuer, 'it is not among the trusted services');
      return find(keyId);
    },
    close: () => undefined,
  };
}

/**
 * Returns a function that looks up keys in a local signer. The signer reloads a changed file within a second, because a
 * key may have been revoked, and at once for an unknown key id, because another replica may have added the key.
 */
export function signerKeys(signer: Signer): (keyId: string) => Promise<TrustedKey | undefined> {
  const imported = new Map<string, Key>();
  return async (keyId) => {
    await signer.refresh(POLL_INTERVAL_MS);
    const find = () => signer.publicKeys().find((key) => key.keyId === keyId);
    if (find() === undefined) await signer.refresh();
    const found = find();
    return found && trusted(found, imported);
  };
}

function trusted({ keyId, jwk, notAfter }: PublicKey, imported: Map<string, Key>): TrustedKey {
  const key = imported.get(keyId) ?? publicKey(jwk.x);
  imported.set(keyId, key);
  return { key, notAfter };
}

/** The error for keys that cannot be fetched. */
export function keysUnavailable(
  issuer: ServiceName,
  why: string,
  cause?: unknown,
): UnavailableError {
  const detail = isWritError(cause) ? ` (${cause.reason})` : '';
  return new UnavailableError(
    'KEYS_UNAVAILABLE',
    `The keys of ${issuer} are unavailable: ${why}${detail}.`,
    { service: issuer },
    { cause },
  );
}
