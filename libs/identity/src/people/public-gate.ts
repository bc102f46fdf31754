import { type Clock, PermissionDeniedError, UnauthenticatedError } from '@writ/kernel';
import type { Gate, Person } from '@writ/rpc';
import { callerRow, permitsRoles, rpcKey } from '../services/caller-table.ts';
import { bearer } from '../tokens/credentials.ts';
import type { ApiKeys } from './api-keys.ts';
import type { Oidc } from './oidc/oidc.ts';
import { haltRateLimit } from './tenant-rate.ts';

/** Options of {@link publicGate}. */
export interface PublicGateOptions {
  readonly apiKeys: Pick<ApiKeys, 'verify'>;
  /** The issuer of the accepted OIDC tokens. Default: only API keys are accepted. */
  readonly oidc?: Oidc | undefined;
  /** Counts one call of a tenant; throws when the limit is reached. Default: calls are not limited. */
  readonly rateLimit?: (tenant: string) => void | Promise<void>;
  /** Default: the system clock. */
  readonly clock?: Clock;
}

const API_KEY = /^writ_/;

/**
 * Creates the gate of the public port. It requires an API key or OIDC token with a role that permits the RPC, and
 * limits the call rate of each tenant (SYS-6). Open RPCs, such as health checks, need no credentials. Internal RPCs are
 * denied. Calls of Halt, Resume and ListHalts by administrators and operators are counted separately (BD-2).
 * @throws UnauthenticatedError TOKEN_MISSING, TOKEN_INVALID, TOKEN_EXPIRED (from the gate it returns)
 * @throws PermissionDeniedError ROLE_REQUIRED, CALLER_NOT_ALLOWED (from the gate it returns)
 * @throws OverloadedError RATE_LIMITED, UnavailableError ISSUER_UNAVAILABLE, API_KEYS_UNREADABLE
 *   (from the gate it returns)
 */
export function publicGate(options: PublicGateOptions): Gate {
  const { apiKeys, oidc, rateLimit } = options;
  const limitHalts = haltRateLimit(options.clock);
  const limitReadersOfHalts = haltRateLimit(options.clock);
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
    if (row !== undefined && 'open' in row) return { isAnonymous: true };
    if (row === undefined || !('people' in row))
      throw new PermissionDeniedError(
        'CALLER_NOT_ALLOWED',
        `${rpc} is not available on the public port.`,
        { rpc },
      );
    const person = await personOf(bearer(call, 'an API key'));
    const hasOwnRate = row.ownRate?.some((role) => person.roles.includes(role)) === true;
    if (hasOwnRate) limitHalts(person.tenant);
    else {
      // Every call of a row with a rate of its own uses the capacity that is reserved for halts.
      if (row.ownRate !== undefined) limitReadersOfHalts(person.tenant);
      await rateLimit?.(person.tenant);
    }
    if (!permitsRoles(rpc, person.roles))
      throw new PermissionDeniedError(
        'ROLE_REQUIRED',
        `${rpc} requires the role ${row.people.join(' or ')}.`,
        { rpc, roles: row.people.join(',') },
      );
    return { person };
  };
}
