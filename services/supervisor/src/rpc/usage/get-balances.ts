import type { UsageService } from '@writ/contracts/writ/usage/v1/usage_service_pb';
import { type Handler, requirePerson } from '@writ/rpc';
import type { SupervisorContext } from '../../context.ts';
import { readableTenant } from '../../domain/usage/usage-rights.ts';

/**
 * GetBalances: the balances of a session and of a tenant's current day and month (EM-10).
 * @throws PermissionDeniedError OPERATOR_REQUIRED
 */
export function getBalances({
  peers,
}: SupervisorContext): Handler<typeof UsageService.method.getBalances> {
  return async ({ tenant, sessionId }, call) => {
    const of = readableTenant(requirePerson(call), tenant);
    const { levels } = await peers.executionMeter.getBalances(of, sessionId);
    return { levels };
  };
}
