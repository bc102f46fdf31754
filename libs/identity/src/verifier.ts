import type { Clock } from '@writ/kernel';
import { isSigned } from './ed25519.ts';
import { freezeDeep } from './freeze-deep.ts';
import type { ServiceName } from './names.ts';
import { parseToken, type Registered, readClaims, readRegistered } from './parse-token.ts';
import { TokenCache } from './token-cache.ts';
import { tokenExpired, tokenInvalid } from './token-error.ts';
import { type Claims, KIND_RULES, type TokenKind } from './token-kinds.ts';
import type { Trust } from './trust.ts';

/** What a reader asks of a token. */
export interface VerifyOptions {
  /** Who may have issued it, among those who may issue its kind at all. */
  readonly issuer: ServiceName | readonly ServiceName[];
  /** The audience that it must name, exactly. */
  readonly audience: string;
  /** Accepts a token past its expiry, but never past its key's `not_after`. */
  readonly allowExpired?: boolean;
}

/** A token that counts. */
export interface VerifiedToken<K extends TokenKind> {
  /** The private claim, frozen. */
  readonly claims: Claims<K>;
  /** Its `jti`. */
  readonly id: string;
  readonly issuer: ServiceName;
  /** When it was signed. */
  readonly issueTime: Date;
  readonly expireTime: Date;
  /** Only ever true with `allowExpired`. */
  readonly expired: boolean;
}

/** Checks tokens. */
export interface Verifier {
  /**
   * Checks signature, kind, algorithm, issuer, audience, times and form of a token (TG-1). Clock
   * skew of five seconds is granted; none past the expiry of writs and slot grants.
   * @throws UnauthenticatedError TOKEN_INVALID (`metadata.check` names what failed), TOKEN_EXPIRED
   * @throws UnavailableError KEYS_UNAVAILABLE when the issuer's keys cannot be had (SYS-4)
   */
  verify<K extends TokenKind>(
    kind: K,
    token: string,
    options: VerifyOptions,
  ): Promise<VerifiedToken<K>>;
}

/** What {@link createVerifier} needs. */
export interface VerifierOptions {
  readonly trust: Trust;
  readonly clock: Clock;
}

/** Skew granted to `iat` and `nbf`, in milliseconds. */
const EARLY_MS = 5_000;
const MAX_CACHED = 5_000;
/** Bounds how long a revoked key still opens doors through tokens verified before. */
const CACHE_MS = 5 * 60 * 1000;

/**
 * A verifier that trusts `trust`. Tokens that are presented again and again (service, agent, slot
 * grant) are kept verified by their SHA-256 until they expire, five minutes at most; what depends
 * on the reader and on the time is checked every time.
 */
export function createVerifier({ trust, clock }: VerifierOptions): Verifier {
  const caches: { readonly [K in TokenKind]: TokenCache<Known<K>> } = {
    service: newCache('service'),
    agent: newCache('agent'),
    slot_grant: newCache('slot_grant'),
    writ: newCache('writ'),
    receipt: newCache('receipt'),
    checkpoint: newCache('checkpoint'),
  };
  return {
    async verify(kind, token, options) {
      const asked = clock.now().getTime();
      const cache = caches[kind];
      let known = cache.get(token, asked);
      if (known === undefined) {
        known = await check(trust, clock, kind, token, issuersOf(kind, options));
        cache.set(token, known, known.cacheUntil);
      }
      return judge(kind, known, options, clock.now().getTime());
    },
  };
}

function newCache<V>(kind: TokenKind): TokenCache<V> {
  return new TokenCache(KIND_RULES[kind].cached ? MAX_CACHED : 0);
}

/** What stays true of a token however often it is shown, and to whomever. */
interface Known<K extends TokenKind> extends Registered {
  readonly claims: Claims<K>;
  readonly issuer: ServiceName;
  readonly cacheUntil: number;
}

/** The issuers to ask for keys: nobody else's key can make the token count. */
function issuersOf(kind: TokenKind, { issuer }: VerifyOptions): readonly ServiceName[] {
  const wanted: readonly ServiceName[] = typeof issuer === 'string' ? [issuer] : issuer;
  return wanted.filter((name) => KIND_RULES[kind].issuers.includes(name));
}

async function check<K extends TokenKind>(
  trust: Trust,
  clock: Clock,
  kind: K,
  token: string,
  issuers: readonly ServiceName[],
): Promise<Known<K>> {
  const { keyId, issuer, payload } = parseToken(kind, token);
  if (!issuers.includes(issuer)) throw wrongIssuer(kind, issuer);
  const key = await trust.key(issuer, keyId);
  if (key === undefined) throw tokenInvalid(kind, 'kid', `${issuer} has no such key`);
  if (!isSigned(token, key.key)) {
    throw tokenInvalid(kind, 'signature', 'its signature does not fit');
  }
  const registered = readRegistered(kind, payload);
  const now = clock.now().getTime();
  // A checkpoint outlives the keys: what counts is whether its key signed at that time (SV-8).
  const signedAt = kind === 'checkpoint' ? registered.issuedAt.getTime() : now;
  if (key.notAfter !== undefined && signedAt >= key.notAfter.getTime())
    throw tokenInvalid(kind, 'kid', `${issuer} no longer vouches for its key`);
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
  known: Known<K>,
  options: VerifyOptions,
  now: number,
): VerifiedToken<K> {
  const { claims, id, issuer, issuedAt: issueTime, expireTime } = known;
  if (!issuersOf(kind, options).includes(issuer)) throw wrongIssuer(kind, issuer);
  if (known.audience !== options.audience)
    throw tokenInvalid(kind, 'aud', `its audience is not ${options.audience}`);
  if (known.issuedAt.getTime() > now + EARLY_MS)
    throw tokenInvalid(kind, 'iat', 'it was issued in the future; compare the clocks');
  if (known.notBefore !== undefined && known.notBefore.getTime() > now + EARLY_MS)
    throw tokenInvalid(kind, 'nbf', 'its time has not come; compare the clocks');
  const expired = now >= expireTime.getTime() + KIND_RULES[kind].leewayMs;
  if (expired && options.allowExpired !== true) throw tokenExpired(kind, expireTime);
  return { claims, id, issuer, issueTime, expireTime, expired };
}

function wrongIssuer(kind: TokenKind, issuer: ServiceName): Error {
  return tokenInvalid(kind, 'iss', `${issuer} may not issue it`);
}
