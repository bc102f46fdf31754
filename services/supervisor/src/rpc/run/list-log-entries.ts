import type { RunService } from '@writ/contracts/writ/run/v1/run_service_pb';
import { type Handler, requirePerson } from '@writ/rpc';
import type { SupervisorContext } from '../../context.ts';
import { loadRun } from '../../store/run/runs.ts';

const DEFAULT_PAGE = 50;

/** ListLogEntries: what the agents of a run of the caller's tenant wrote to its log (AG-4, AG-5, RT-1). */
export function listLogEntries({
  store,
  peers,
}: SupervisorContext): Handler<typeof RunService.method.listLogEntries> {
  return async ({ runId, agentInstance, pageSize, pageToken }, call) => {
    const { tenant } = requirePerson(call);
    await loadRun(store.db, { tenant, runId });
    const page = { agentInstance, pageToken, pageSize: pageSize === 0 ? DEFAULT_PAGE : pageSize };
    const request = { tenant, runId, ...page };
    const { entries, nextPageToken } = await peers.agentWorker.listLogEntries(request, call.signal);
    return { entries, nextPageToken };
  };
}
