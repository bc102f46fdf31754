import {
  type Clock,
  isId,
  isWritError,
  listOf,
  systemClock,
  UnauthenticatedError,
} from '@writ/kernel';
import type { Person } from '@writ/rpc';
import { errors, type JWTPayload, jwtVerify } from 'jose';
import { isRole } from '../roles.ts';
import { issuerJwks } from './issuer-jwks.ts';
import type { OidcSettings } from './oidc-settings.ts';

/** Verifies the tokens of one OIDC issuer. */
export interface Oidc {
  /**
   * Returns the person of a token.
   * @throws UnauthenticatedError TOKEN_INVALID naming the check that failed, TOKEN_EXPIRED;
   *   UnavailableError ISSUER_UNAVAILABLE
   */
  verify(token: string): Promise<Person>;
}

/** Tolerated clock skew of the issuer, seconds. */
const CLOCK_TOLERANCE_S = 5;
const MAX_SUBJECT = 256;

/** The clock of a verifier, and the callback for problems that concern every token. */
export interface OidcParts {
  /** Default: the system clock. */
  readonly clock?: Clock;
  /** Called once when the keys of the issuer become unavailable. */
  readonly onUnavailable?: (error: unknown) => void;
}

/** Creates a verifier of OpenID Connect tokens: signature, algorithm, issuer, audience, times and claims. */
export function createOidc(
  settings: OidcSettings,
  { clock = systemClock, onUnavailable = () => undefined }: OidcParts = {},
): Oidc {
  const keys = issuerJwks(settings, clock, onUnavailable);
  const { issuer, audience, algorithms, subjectClaim } = settings;
  return {
    async verify(token) {
      try {
        const { payload } = await jwtVerify(token, keys, {
          issuer,
          audience,
          algorithms: [...algorithms],
          requiredClaims: ['exp', 'iss', 'aud'],
          clockTolerance: CLOCK_TOLERANCE_S,
          currentDate: clock.now(),
        });
        return {
          subject: subjectOf(payload, subjectClaim),
          tenant: tenantOf(payload, settings),
          roles: rolesOf(payload, settings),
        };
      } catch (error) {
        throw isWritError(error) ? error : toWritError(error);
      }
    },
  };
}

function subjectOf(payload: JWTPayload, name: string): string {
  const subject = claim(payload, name);
  if (typeof subject === 'string' && subject !== '' && subject.length <= MAX_SUBJECT)
    return subject;
  throw badClaim(name, `must be 1 to ${MAX_SUBJECT} characters`);
}

function tenantOf(payload: JWTPayload, { tenantClaim }: OidcSettings): string {
  const tenant = claim(payload, tenantClaim);
  if (typeof tenant === 'string' && isId(tenant)) return tenant;
  throw badClaim(tenantClaim, 'must name a tenant');
}

/** Returns the roles of the claim, which is a list or a space-separated string. Unknown roles are ignored. */
function rolesOf(payload: JWTPayload, { rolesClaim }: OidcSettings): Person['roles'] {
  const named = claim(payload, rolesClaim);
  const roles: readonly unknown[] = typeof named === 'string' ? named.split(' ') : listOf(named);
  return [...new Set(roles.filter(isRole))];
}

/** Returns the claim named `name`; without such a claim, the value at the dotted path `name` (`realm_access.roles`). */
function claim(payload: JWTPayload, name: string): unknown {
  if (Object.hasOwn(payload, name)) return payload[name];
  let value: unknown = payload;
  for (const part of name.split('.')) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, part))
      return undefined;
    value = (value as Record<string, unknown>)[part];
  }
  return value;
}

function badClaim(name: string, rule: string): UnauthenticatedError {
  return new UnauthenticatedError('TOKEN_INVALID', `The token's claim ${name} ${rule}.`, {
    token: 'oidc',
    check: name,
  });
}

function toWritError(error: unknown): UnauthenticatedError {
  if (error instanceof errors.JWTExpired) {
    return new UnauthenticatedError('TOKEN_EXPIRED', 'The token has expired; obtain a new one.', {
      token: 'oidc',
    });
  }
  const check = error instanceof errors.JWTClaimValidationFailed ? error.claim : 'signature';
  return new UnauthenticatedError('TOKEN_INVALID', `The token is not valid (${check}).`, {
    token: 'oidc',
    check,
  });
}
