import type { UsageService } from '@writ/contracts/writ/usage/v1/usage_service_pb';
import { type Handler, requirePerson } from '@writ/rpc';
import { readTab } from '../../app/usage/read-usage.ts';
import type { SupervisorContext } from '../../context.ts';

/**
 * GetRunUsage: the tab of an agent of the caller's tenant, with what is spent, reserved and left at every level
 * (EM-10).
 * @throws NotFoundError RUN_NOT_FOUND, AGENT_NOT_FOUND; TAB_NOT_FOUND before the run has started
 */
export function getRunUsage(
  context: SupervisorContext,
): Handler<typeof UsageService.method.getRunUsage> {
  return async ({ runId, agentInstance: instance }, call) => {
    const { tab } = await readTab(context, { tenant: requirePerson(call).tenant, runId, instance });
    return { ...(tab && { tab }) };
  };
}
