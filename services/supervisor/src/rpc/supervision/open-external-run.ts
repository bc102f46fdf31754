import type { SupervisionService } from '@writ/contracts/writ/supervision/v1/supervision_service_pb';
import type { Handler } from '@writ/rpc';
import { openExternalRun as open } from '../../app/run/open-external-run.ts';
import type { SupervisorContext } from '../../context.ts';
import { rootRefOf } from '../../wire/supervision.ts';

/** OpenExternalRun: returns the run in which the holder of an agent key acts, and starts one if necessary (AP-1). */
export function openExternalRun(
  context: SupervisorContext,
): Handler<typeof SupervisionService.method.openExternalRun> {
  return async (request, call) => {
    const run = await open(context, request, call);
    const { tenant, run_id: runId, session_id: sessionId } = run;
    return { tenant, runId, sessionId, agent: rootRefOf(run) };
  };
}
