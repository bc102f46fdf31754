import type { ServiceName } from '../services/names.ts';
import { parseToken, type Registered, readClaims, readRegistered } from './parse-token.ts';
import { tokenExpired, tokenInvalid } from './token-error.ts';
import { type Claims, KIND_RULES, type TokenKind } from './token-kinds.ts';

/** Maximum time for which cached tokens of a revoked key are accepted, ms. */
const CACHE_MS = 5 * 60 * 1000;

/** Requirements of a service that verifies a token. */
export interface VerifyOptions {
  /** Accepted issuers. Issuers that may not issue tokens of this kind are ignored. */
  readonly issuer: ServiceName | readonly ServiceName[];
  /** The required audience. */
  readonly audience: string;
  /** Accepts an expired token. After `not_after` of its key, only a checkpoint is accepted. */
  readonly allowExpired?: boolean;
  /**
   * Accepts a token whose `iat` is in the future, because the clock of its issuer was wrong; only for tokens that
   * permit no action (BD-3).
   */
  readonly allowEarly?: boolean;
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
  /** Tenants for which the issuer may not act, even if its token is valid for all tenants (SYS-6). */
  readonly exceptTenants: readonly string[];
}

/**
 * The current time and the tolerated clock skew for the check of the times of a token: Unix times and a duration, in
 * ms.
 */
export interface Times {
  readonly now: number;
  readonly leewayMs: number;
  /**
   * The current time for the check of `exp`. For a slot grant, it is the time of the slowest known clock of the
   * issuer's replicas, but not earlier than `now - leewayMs`. It equals `now` if no clock is known, and for all other
   * tokens.
   */
  readonly expiryNow: number;
}

/** The result of the checks that do not depend on the verifying service or the time. */
export interface CheckedToken<K extends TokenKind> extends Registered {
  readonly claims: Claims<K>;
  readonly issuer: ServiceName;
  readonly exceptTenants: readonly string[];
  readonly cacheUntil: number;
}

/** Returns the accepted issuers that may issue tokens of `kind`. Only the keys of these issuers are fetched. */
export function issuersOf(kind: TokenKind, { issuer }: VerifyOptions): readonly ServiceName[] {
  const wanted: readonly ServiceName[] = typeof issuer === 'string' ? [issuer] : issuer;
  return wanted.filter((name) => KIND_RULES[kind].issuers.includes(name));
}

/** A key of an issuer, for the verification of one token. */
export interface SigningKey {
  /** Expiry time of the key. */
  readonly notAfter: Date | undefined;
  /** Tenants for which the owner of the key may not act (SYS-6). Default: none. */
  readonly exceptTenants?: readonly string[];
  /** Verifies the signature of the token. */
  readonly isSigned: () => boolean | Promise<boolean>;
}

/** Input of {@link checkToken}. */
export interface TokenCheck {
  readonly issuers: readonly ServiceName[];
  /** Current time of the verifying service, Unix time in ms. */
  readonly now: number;
  /**
   * Returns a key of an issuer; undefined when the issuer does not have it.
   * @param tenants the tenants that a worker token names; they only select the worker pool whose keys are used
   */
  readonly keyOf: (
    issuer: ServiceName,
    keyId: string,
    tenants: readonly string[],
  ) => Promise<SigningKey | undefined>;
}

/**
 * Checks signature and form of a token, without the checks that depend on the verifying service (TG-1).
 * @throws UnauthenticatedError TOKEN_INVALID naming the check, and what `keyOf` throws
 */
export async function checkToken<K extends TokenKind>(
  kind: K,
  token: string,
  { issuers, now, keyOf }: TokenCheck,
): Promise<CheckedToken<K>> {
  const { keyId, issuer, payload } = parseToken(kind, token);
  if (!issuers.includes(issuer)) throw wrongIssuer(kind, issuer);
  const isWorker = kind === 'service' && issuer === 'agent-worker';
  const tenants = isWorker ? readClaims('service', payload).tenants : [];
  const key = await keyOf(issuer, keyId, tenants);
  if (key === undefined) throw tokenInvalid(kind, 'kid', `${issuer} does not have its key`);
  if (!(await key.isSigned())) {
    throw tokenInvalid(kind, 'signature', 'its signature does not match');
  }
  const registered = readRegistered(kind, payload);
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
  const { exceptTenants = [] } = key;
  return { ...registered, claims, issuer, exceptTenants, cacheUntil };
}

/**
 * Checks issuer, audience and times of a token against the requirements of the verifying service and the current time.
 * @throws UnauthenticatedError TOKEN_INVALID naming the check, TOKEN_EXPIRED
 */
export function judgeToken<K extends TokenKind>(
  kind: K,
  known: CheckedToken<K>,
  options: VerifyOptions,
  times: Times,
): VerifiedToken<K> {
  const { claims, id, issuer, exceptTenants, issuedAt: issueTime, expireTime } = known;
  const latest = times.now + times.leewayMs;
  if (!issuersOf(kind, options).includes(issuer)) throw wrongIssuer(kind, issuer);
  if (known.audience !== options.audience)
    throw tokenInvalid(kind, 'aud', `its audience is not ${options.audience}`);
  if (known.issuedAt.getTime() > latest && options.allowEarly !== true)
    throw tokenInvalid(kind, 'iat', 'it was issued in the future; compare the clocks');
  if (known.notBefore !== undefined && known.notBefore.getTime() > latest)
    throw tokenInvalid(kind, 'nbf', 'it is not valid yet; compare the clocks');
  const expired = isExpired(kind, known, times);
  if (expired && options.allowExpired !== true) throw tokenExpired(kind, expireTime);
  return { claims, id, issuer, issueTime, expireTime, expired, exceptTenants };
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

/** Freezes a message recursively: verified claims are shared between calls. */
function freezeDeep<T>(value: T): T {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value);
    for (const member of Object.values(value)) freezeDeep(member);
  }
  return value;
}
