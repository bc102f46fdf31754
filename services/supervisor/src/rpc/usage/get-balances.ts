import type { UsageService } from '@writ/contracts/writ/usage/v1/usage_service_pb';
import { type Handler, requirePerson } from '@writ/rpc';
import { readBalances } from '../../app/usage/read-usage.ts';
import type { SupervisorContext } from '../../context.ts';

/**
 * GetBalances: the balances of a session and of a tenant's current day and month (EM-10).
 * @throws PermissionDeniedError OPERATOR_REQUIRED
 */
export function getBalances(
  context: SupervisorContext,
): Handler<typeof UsageService.method.getBalances> {
  return async (request, call) => {
    const { levels } = await readBalances(context, requirePerson(call), request);
    return { levels };
  };
}
