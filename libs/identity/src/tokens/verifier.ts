import type { Clock, PeerClocks } from '@writ/kernel';
import { isSigned } from '../keys/ed25519.ts';
import type { Trust } from '../keys/trust.ts';
import type { ServiceName } from '../services/names.ts';
import { freezeDeep } from './freeze-deep.ts';
import { parseToken, type Registered, readClaims, readRegistered } from './parse-token.ts';
import { TokenCache } from './token-cache.ts';
import { tokenExpired, tokenInvalid } from './token-error.ts';
import { type Claims, DEFAULT_CLOCK_LEEWAY_MS, KIND_RULES, type TokenKind } from './token-kinds.ts';

/** Expectations of a reader. */
export interface VerifyOptions {
  /** Accepted issuers, among those that may issue the kind. */
  readonly issuer: ServiceName | readonly ServiceName[];
  /** The required audience. */
  readonly audience: string;
  /** Accepts an expired token, but not after `not_after` of its key. */
  readonly allowExpired?: boolean;
}

/** A verified token. */
export interface VerifiedToken<K extends TokenKind> {
  /** The private claim, frozen. */
  readonly claims: Claims<K>;
  /** Its `jti`. */
  readonly id: string;
  readonly issuer: ServiceName;
  /** Time of the signature. */
  readonly issueTime: Date;
  readonly expireTime: Date;
  /** True only with `allowExpired`. */
  readonly expired: boolean;
}

/** Verifies tokens. */
export interface Verifier {
  /**
   * Verifies signature, kind, algorithm, issuer, audience, times and form of a token (TG-1). Tolerates the clock
   * leeway, but not after the expiry of writs and slot grants; that of a grant is judged by the clock of its issuer (BD-3).
   * @throws UnauthenticatedError TOKEN_INVALID (`metadata.check` names the failed check), TOKEN_EXPIRED
   * @throws UnavailableError KEYS_UNAVAILABLE when the issuer's keys are unavailable (SYS-4)
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
  /** Tolerated difference to the clock of the issuer, ms. Default 60,000. */
  readonly leewayMs?: number | undefined;
  /** The clocks of the issuers; without it, or for an issuer that is not known to it, the own clock decides. */
  readonly peerClocks?: PeerClocks | undefined;
}

const MAX_CACHED = 5_000;
/** Maximum time for which cached tokens of a revoked key are accepted, ms. */
const CACHE_MS = 5 * 60 * 1000;

/**
 * Creates a verifier. Verified service, agent and slot grant tokens are cached by their SHA-256 until they
 * expire, at most five minutes; checks that depend on the reader and the time are always repeated.
 */
export function createVerifier(given: VerifierOptions): Verifier {
  const { trust, clock, leewayMs = DEFAULT_CLOCK_LEEWAY_MS, peerClocks } = given;
  const timesFor = (kind: TokenKind, issuer: ServiceName): Times => {
    const now = clock.now().getTime();
    if (kind !== 'slot_grant') return { now, leewayMs, expiryNow: now };
    const issuerNow = peerClocks?.slowestNow(issuer) ?? now;
    return { now, leewayMs, expiryNow: Math.max(issuerNow, now - leewayMs) };
  };
  /** Whether a grant is expired only if the clock of its issuer is not behind. */
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
      // The clock of the issuer may have been set back, or that of one of its replicas is behind.
      if (kind === 'slot_grant' && mayBeCurrent(kind, known)) await trust.refresh?.(known.issuer);
      return judge(kind, known, options, timesFor(kind, known.issuer));
    },
  };
}

/** What the times of tokens are judged by, ms. */
interface Times {
  readonly now: number;
  readonly leewayMs: number;
  /** What expiry is judged by. */
  readonly expiryNow: number;
}

function newCache<V>(kind: TokenKind): TokenCache<V> {
  return new TokenCache(KIND_RULES[kind].cached ? MAX_CACHED : 0);
}

/** The part of the verification that is independent of reader and time. */
interface CheckedToken<K extends TokenKind> extends Registered {
  readonly claims: Claims<K>;
  readonly issuer: ServiceName;
  readonly cacheUntil: number;
}

/** The accepted issuers that may issue the kind; only their keys are fetched. */
function issuersOf(kind: TokenKind, { issuer }: VerifyOptions): readonly ServiceName[] {
  const wanted: readonly ServiceName[] = typeof issuer === 'string' ? [issuer] : issuer;
  return wanted.filter((name) => KIND_RULES[kind].issuers.includes(name));
}

async function check<K extends TokenKind>(
  { trust, clock }: VerifierOptions,
  kind: K,
  token: string,
  issuers: readonly ServiceName[],
): Promise<CheckedToken<K>> {
  const { keyId, issuer, payload } = parseToken(kind, token);
  if (!issuers.includes(issuer)) throw wrongIssuer(kind, issuer);
  const key = await trust.key(issuer, keyId);
  if (key === undefined) throw tokenInvalid(kind, 'kid', `${issuer} does not have its key`);
  if (!isSigned(token, key.key)) {
    throw tokenInvalid(kind, 'signature', 'its signature does not match');
  }
  const registered = readRegistered(kind, payload);
  const now = clock.now().getTime();
  // A checkpoint outlives the keys: its key must have been valid at the time of signing (SV-8).
  const signedAt = kind === 'checkpoint' ? registered.issuedAt.getTime() : now;
  if (key.notAfter !== undefined && signedAt >= key.notAfter.getTime())
    throw tokenInvalid(kind, 'kid', `${issuer} has retired its key`);
  const claims = freezeDeep(readClaims(kind, payload));
  const cacheUntil = Math.min(
    registered.expireTime.getTime(),
    key.notAfter?.getTime() ?? Number.POSITIVE_INFINITY,
    now + CACHE_MS,
  );
  return { ...registered, claims, issuer, cacheUntil };
}

function judge<K extends TokenKind>(
  kind: K,
  known: CheckedToken<K>,
  options: VerifyOptions,
  times: Times,
): VerifiedToken<K> {
  const { claims, id, issuer, issuedAt: issueTime, expireTime } = known;
  const latest = times.now + times.leewayMs;
  if (!issuersOf(kind, options).includes(issuer)) throw wrongIssuer(kind, issuer);
  if (known.audience !== options.audience)
    throw tokenInvalid(kind, 'aud', `its audience is not ${options.audience}`);
  if (known.issuedAt.getTime() > latest)
    throw tokenInvalid(kind, 'iat', 'it was issued in the future; compare the clocks');
  if (known.notBefore !== undefined && known.notBefore.getTime() > latest)
    throw tokenInvalid(kind, 'nbf', 'it is not valid yet; compare the clocks');
  const expired = isExpired(kind, known, times);
  if (expired && options.allowExpired !== true) throw tokenExpired(kind, expireTime);
  return { claims, id, issuer, issueTime, expireTime, expired };
}

function isExpired(
  kind: TokenKind,
  { expireTime }: Registered,
  { expiryNow, leewayMs }: Times,
): boolean {
  return expiryNow >= expireTime.getTime() + (KIND_RULES[kind].isStrict ? 0 : leewayMs);
}

function wrongIssuer(kind: TokenKind, issuer: ServiceName): Error {
  return tokenInvalid(kind, 'iss', `${issuer} may not issue it`);
}
