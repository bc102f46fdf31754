import type { ServerName } from './names.ts';
import type { SignedToken, Signer } from './signer.ts';

/** What {@link serviceTokens} needs. */
export interface ServiceTokenOptions {
  /** The service that is called. */
  readonly audience: ServerName;
  /** Id of the calling replica. */
  readonly replica: string;
  /** Tenants that the caller serves; none given means all (SYS-6). */
  readonly tenants?: readonly string[];
}

/** Life of a service token, in milliseconds; a new one is made at half of it. */
const SERVICE_TOKEN_TTL_MS = 10 * 60 * 1000;

/**
 * Gives the token that proves the signer's service to one audience: made when first asked for,
 * kept, renewed at half its life. Pass it to a client as `serviceToken`.
 */
export function serviceTokens(
  signer: Signer,
  { audience, replica, tenants = [] }: ServiceTokenOptions,
): () => Promise<string> {
  let latest: Promise<SignedToken> | undefined;
  let renewAt = Number.NEGATIVE_INFINITY;

  const renew = (now: number): Promise<SignedToken> => {
    const made = signer.sign('service', {
      audience,
      claims: { name: signer.service, replica, tenants: [...tenants] },
      ttlMs: SERVICE_TOKEN_TTL_MS,
    });
    renewAt = now + SERVICE_TOKEN_TTL_MS / 2;
    // A failure is told to whoever asked; the next one to ask tries again.
    made.catch(() => {
      if (latest === made) latest = undefined;
    });
    return made;
  };

  return async () => {
    const now = signer.clock.now().getTime();
    // Looks both ways: after the clock stepped back, the token would be issued in the future.
    if (latest === undefined || now >= renewAt || now < renewAt - SERVICE_TOKEN_TTL_MS / 2)
      latest = renew(now);
    return (await latest).token;
  };
}
