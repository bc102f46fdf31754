import type { UsageService } from '@writ/contracts/writ/usage/v1/usage_service_pb';
import { type Handler, requirePerson } from '@writ/rpc';
import { sumUsage } from '../../app/usage/read-usage.ts';
import type { SupervisorContext } from '../../context.ts';

/**
 * QueryUsage: sums of settled usage by agent, run, session, tenant, model or day (EM-10).
 * @throws PermissionDeniedError OPERATOR_REQUIRED; InvalidRequestError INVALID_PAGE_TOKEN
 */
export function queryUsage(
  context: SupervisorContext,
): Handler<typeof UsageService.method.queryUsage> {
  return async ({ $typeName: _, ...query }, call) => {
    const { rows, nextPageToken } = await sumUsage(context, requirePerson(call), query);
    return { rows, nextPageToken };
  };
}
