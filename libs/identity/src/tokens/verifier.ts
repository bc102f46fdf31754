import type { Clock, PeerClocks } from '@writ/kernel';
import { isSigned } from '../keys/ed25519.ts';
import type { Trust } from '../keys/trust.ts';
import type { ServiceName } from '../services/names.ts';
import {
  type CheckedToken,
  checkToken,
  issuersOf,
  judgeToken,
  type Times,
  type VerifiedToken,
  type VerifyOptions,
} from './check-token.ts';
import { TokenCache } from './token-cache.ts';
import { DEFAULT_CLOCK_LEEWAY_MS, KIND_RULES, type TokenKind } from './token-kinds.ts';

export type { VerifiedToken, VerifyOptions };

/** Verifies tokens. */
export interface Verifier {
  /**
   * Verifies signature, kind, algorithm, issuer, audience, times and form of a token (TG-1). Tolerates the clock
   * leeway, except at the expiry of writs and slot grants. The expiry of a slot grant is checked against the clock of
   * its issuer (BD-3).
   * @throws UnauthenticatedError TOKEN_INVALID (`metadata.check` names the failed check), TOKEN_EXPIRED
   * @throws UnavailableError KEYS_UNAVAILABLE when the issuer's keys are unavailable (SYS-4)
   * @throws PermissionDeniedError TENANT_NOT_SERVED when the tenants of a worker do not all belong to the same pool
   */
  verify<K extends TokenKind>(
    kind: K,
    token: string,
    options: VerifyOptions,
  ): Promise<VerifiedToken<K>>;
}

/** Options of {@link createVerifier}. */
export interface VerifierOptions {
  readonly trust: Trust;
  readonly clock: Clock;
  /** Tolerated difference between the local clock and the clock of the issuer, ms. Default 60,000. */
  readonly leewayMs?: number | undefined;
  /**
   * The clocks of the issuers, for the expiry of slot grants. If the clock of an issuer is unknown, the local clock is
   * used. Default: all clocks are unknown.
   */
  readonly peerClocks?: PeerClocks | undefined;
}

/** Maximum memory of the cached tokens of one kind, bytes: enough for about 500 tokens. */
const MAX_CACHED_BYTES = 2_000_000;

/**
 * Creates a verifier. Verified service, agent and run tokens and slot grants are cached by their SHA-256 until they or
 * their keys expire, at most five minutes; checks that depend on the options of the call and the time are always
 * repeated.
 */
export function createVerifier(given: VerifierOptions): Verifier {
  const { trust, clock, leewayMs = DEFAULT_CLOCK_LEEWAY_MS, peerClocks } = given;
  const timesFor = (kind: TokenKind, issuer: ServiceName): Times => {
    const now = clock.now().getTime();
    if (kind !== 'slot_grant') return { now, leewayMs, expiryNow: now };
    const issuerNow = peerClocks?.slowestNow(issuer) ?? now;
    return { now, leewayMs, expiryNow: Math.max(issuerNow, now - leewayMs) };
  };
  /**
   * Whether a slot grant that has expired by the last known clock of its issuer may be current, because that clock may
   * be behind.
   */
  const mayBeCurrent = (kind: TokenKind, { issuer, expireTime }: CheckedToken<TokenKind>) => {
    const { now, expiryNow } = timesFor(kind, issuer);
    const lateMs = now - expireTime.getTime();
    const isKnown = peerClocks?.slowestNow(issuer) !== undefined;
    return isKnown && expiryNow >= expireTime.getTime() && lateMs < leewayMs;
  };
  const caches: { readonly [K in TokenKind]: TokenCache<CheckedToken<K>> } = {
    service: newCache('service'),
    agent: newCache('agent'),
    slot_grant: newCache('slot_grant'),
    writ: newCache('writ'),
    receipt: newCache('receipt'),
    checkpoint: newCache('checkpoint'),
    run_token: newCache('run_token'),
  };
  return {
    async verify(kind, token, options) {
      const now = clock.now().getTime();
      const cache = caches[kind];
      let known = cache.get(token, now);
      if (known === undefined) {
        known = await check({ trust, clock }, kind, token, issuersOf(kind, options));
        cache.set(token, known, known.cacheUntil);
      }
      // The clock of the issuer may have been set back, or the clock of one of its replicas may be behind.
      if (kind === 'slot_grant' && mayBeCurrent(kind, known)) await trust.refresh?.(known.issuer);
      return judgeToken(kind, known, options, timesFor(kind, known.issuer));
    },
  };
}

function newCache<V>(kind: TokenKind): TokenCache<V> {
  return new TokenCache(KIND_RULES[kind].cached ? MAX_CACHED_BYTES : 0);
}

async function check<K extends TokenKind>(
  { trust, clock }: VerifierOptions,
  kind: K,
  token: string,
  issuers: readonly ServiceName[],
): Promise<CheckedToken<K>> {
  return await checkToken(kind, token, {
    issuers,
    now: clock.now().getTime(),
    keyOf: async (issuer, keyId, tenants) => {
      const known = await trust.key(issuer, keyId, tenants);
      const { pooledTenants = [] } = trust;
      return (
        known && {
          notAfter: known.notAfter,
          exceptTenants: issuer === 'agent-worker' && tenants.length === 0 ? pooledTenants : [],
          isSigned: () => isSigned(token, known.key),
        }
      );
    },
  });
}
