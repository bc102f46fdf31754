import type { UsageService } from '@writ/contracts/writ/usage/v1/usage_service_pb';
import { type Handler, requirePerson } from '@writ/rpc';
import type { SupervisorContext } from '../../context.ts';
import { loadAgent } from '../../store/agent/agents.ts';
import { loadRun } from '../../store/run/runs.ts';

/**
 * GetRunUsage: the tab of an agent of the caller's tenant, with what is spent, reserved and left at every level
 * (EM-10).
 * @throws NotFoundError RUN_NOT_FOUND, AGENT_NOT_FOUND; TAB_NOT_FOUND before the run has started
 */
export function getRunUsage({
  store,
  peers,
}: SupervisorContext): Handler<typeof UsageService.method.getRunUsage> {
  return async ({ runId, agentInstance }, call) => {
    const run = { tenant: requirePerson(call).tenant, runId };
    const { root_instance } = await loadRun(store.db, run);
    const agent = { ...run, instance: agentInstance || root_instance };
    await loadAgent(store.db, agent);
    const { tab } = await peers.executionMeter.getTab(agent);
    return { ...(tab && { tab }) };
  };
}
