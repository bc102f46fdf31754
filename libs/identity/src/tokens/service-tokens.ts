import { POLL_INTERVAL_MS, type SignedToken, type Signer } from '../keys/signer.ts';
import type { ServerName } from '../services/names.ts';

/** Options of {@link serviceTokens}. */
export interface ServiceTokenOptions {
  /** The called service. */
  readonly audience: ServerName;
  /** Id of the calling replica. */
  readonly replica: string;
  /** Tenants that the caller serves; empty means all (SYS-6). */
  readonly tenants?: readonly string[];
}

/** Lifetime of a service token, ms. A token is renewed after half of its lifetime. */
const SERVICE_TOKEN_TTL_MS = 10 * 60 * 1000;

/**
 * Returns a function that returns the service token for one audience. The token is cached, and renewed at half of its
 * lifetime or when the signing key was replaced, because the old key may have been revoked. Pass the function to a
 * client as `serviceToken`.
 */
export function serviceTokens(
  signer: Signer,
  { audience, replica, tenants = [] }: ServiceTokenOptions,
): () => Promise<string> {
  let latest: Promise<SignedToken> | undefined;
  let renewAt = Number.NEGATIVE_INFINITY;
  let keyId: string | undefined;

  const renew = (now: number): Promise<SignedToken> => {
    const pending = signer.sign('service', {
      audience,
      claims: { name: signer.service, replica, tenants: [...tenants] },
      ttlMs: SERVICE_TOKEN_TTL_MS,
    });
    renewAt = now + SERVICE_TOKEN_TTL_MS / 2;
    // If the signature uses a newer key than this one, the next call renews the token once more.
    keyId = signer.keyId;
    // A failure rejects the current callers; the next call retries.
    pending.catch(() => {
      if (latest === pending) latest = undefined;
    });
    return pending;
  };

  return async () => {
    // A service that only calls others does not read its key file otherwise.
    await signer.refresh(POLL_INTERVAL_MS);
    const now = signer.clock.now().getTime();
    // After the clock was set back, the cached token would have been issued in the future.
    const isCurrent = now < renewAt && now >= renewAt - SERVICE_TOKEN_TTL_MS / 2;
    if (latest === undefined || !isCurrent || keyId !== signer.keyId) latest = renew(now);
    return (await latest).token;
  };
}
