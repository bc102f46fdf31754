import { PermissionDeniedError, UnauthenticatedError } from '@writ/kernel';
import type { Gate, Person } from '@writ/rpc';
import type { ApiKeys } from './api-keys.ts';
import { callerRow, rpcKey } from './caller-table.ts';
import { bearer } from './credentials.ts';
import type { Oidc } from './oidc/oidc.ts';

/** What {@link publicGate} needs. */
export interface PublicGateOptions {
  readonly apiKeys: Pick<ApiKeys, 'verify'>;
  /** Whose tokens are taken besides; left out, nobody's. */
  readonly oidc?: Oidc | undefined;
  /** Takes one call of a tenant, or throws. Left out, every one is taken. */
  readonly rateLimit?: (tenant: string) => void | Promise<void>;
}

const API_KEY = /^writ_/;

/**
 * The gate of the public port: people with API keys or tokens of an issuer, by role, so many calls a
 * tenant (SYS-6). Internal RPCs are refused there whatever is presented.
 * @throws UnauthenticatedError TOKEN_MISSING, TOKEN_INVALID, TOKEN_EXPIRED (from the gate it returns)
 * @throws PermissionDeniedError ROLE_REQUIRED, CALLER_NOT_ALLOWED (from the gate it returns)
 * @throws OverloadedError RATE_LIMITED, UnavailableError ISSUER_UNAVAILABLE, API_KEYS_UNREADABLE
 *   (from the gate it returns)
 */
export function publicGate({ apiKeys, oidc, rateLimit }: PublicGateOptions): Gate {
  const personOf = async (credential: string): Promise<Person> => {
    if (oidc !== undefined && !API_KEY.test(credential)) return await oidc.verify(credential);
    const person = apiKeys.verify(credential);
    if (person !== undefined) return person;
    throw new UnauthenticatedError('TOKEN_INVALID', 'The API key is not valid.', {
      token: 'api_key',
    });
  };
  return async (call) => {
    const row = callerRow(call.method);
    const rpc = rpcKey(call.method);
    if (row !== undefined && 'open' in row) return {};
    if (row === undefined || !('people' in row))
      throw new PermissionDeniedError(
        'CALLER_NOT_ALLOWED',
        `${rpc} may not be called at the public port.`,
        { rpc },
      );
    const person = await personOf(bearer(call, 'an API key'));
    await rateLimit?.(person.tenant);
    if (!row.people.some((role) => person.roles.includes(role)))
      throw new PermissionDeniedError(
        'ROLE_REQUIRED',
        `${rpc} needs the role ${row.people.join(' or ')}.`,
        { rpc, roles: row.people.join(',') },
      );
    return { person };
  };
}
