import type { RunService } from '@writ/contracts/writ/run/v1/run_service_pb';
import { type Handler, requirePerson } from '@writ/rpc';
import { listLogEntries as list } from '../../app/run/list-log-entries.ts';
import type { SupervisorContext } from '../../context.ts';

/**
 * ListLogEntries: lists the entries that agents wrote to the log of a run of the caller's tenant (AG-4, AG-5, RT-1).
 */
export function listLogEntries(
  context: SupervisorContext,
): Handler<typeof RunService.method.listLogEntries> {
  return async ({ runId, ...page }, call) => {
    const { tenant } = requirePerson(call);
    const { entries, nextPageToken } = await list(context, { tenant, runId }, page, call.signal);
    return { entries, nextPageToken };
  };
}
