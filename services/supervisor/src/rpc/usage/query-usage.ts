import type { UsageService } from '@writ/contracts/writ/usage/v1/usage_service_pb';
import { type Handler, requirePerson } from '@writ/rpc';
import type { SupervisorContext } from '../../context.ts';
import { readableTenant } from '../../domain/usage/usage-rights.ts';

/**
 * QueryUsage: sums of settled usage by agent, run, session, tenant, model or day (EM-10).
 * @throws PermissionDeniedError OPERATOR_REQUIRED; InvalidRequestError INVALID_PAGE_TOKEN
 */
export function queryUsage({
  peers,
}: SupervisorContext): Handler<typeof UsageService.method.queryUsage> {
  return async ({ $typeName: _, tenant, ...query }, call) => {
    const of = readableTenant(requirePerson(call), tenant);
    const { rows, nextPageToken } = await peers.executionMeter.queryUsage({ ...query, tenant: of });
    return { rows, nextPageToken };
  };
}
