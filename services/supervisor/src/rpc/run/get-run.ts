import type { RunService } from '@writ/contracts/writ/run/v1/run_service_pb';
import { type Handler, requirePerson } from '@writ/rpc';
import type { SupervisorContext } from '../../context.ts';
import { loadRun } from '../../store/run/runs.ts';
import { lastSequence } from '../../store/run/timeline.ts';
import { runMessage } from '../../wire/run.ts';

/** GetRun: reads a run of the caller's tenant; another tenant's is NOT_FOUND (SYS-6). */
export function getRun(context: SupervisorContext): Handler<typeof RunService.method.getRun> {
  return async (request, call) => {
    const { tenant } = requirePerson(call);
    const key = { tenant, runId: request.runId };
    const run = await loadRun(context.store.db, key);
    return { run: runMessage(run, { lastSequence: await lastSequence(context.store.db, key) }) };
  };
}
