import { PermissionDeniedError, UnauthenticatedError } from '@writ/kernel';
import type { Gate } from '@writ/rpc';
import type { ApiKeys } from './api-keys.ts';
import { callerRow, rpcKey } from './caller-table.ts';
import { bearer } from './credentials.ts';

/** What {@link publicGate} needs. */
export interface PublicGateOptions {
  readonly apiKeys: Pick<ApiKeys, 'verify'>;
}

/**
 * The gate of the public port: people with API keys, by role (SYS-6). Internal RPCs are refused
 * there whatever is presented.
 * @throws UnauthenticatedError TOKEN_MISSING, TOKEN_INVALID (from the gate it returns)
 * @throws PermissionDeniedError ROLE_REQUIRED, CALLER_NOT_ALLOWED (from the gate it returns)
 */
export function publicGate({ apiKeys }: PublicGateOptions): Gate {
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
    const person = apiKeys.verify(bearer(call, 'an API key'));
    if (person === undefined)
      throw new UnauthenticatedError('TOKEN_INVALID', 'The API key is not valid.', {
        token: 'api_key',
      });
    if (!row.people.some((role) => person.roles.includes(role)))
      throw new PermissionDeniedError(
        'ROLE_REQUIRED',
        `${rpc} needs the role ${row.people.join(' or ')}.`,
        { rpc, roles: row.people.join(',') },
      );
    return { person };
  };
}
