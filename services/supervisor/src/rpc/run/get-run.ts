import type { RunService } from '@writ/contracts/writ/run/v1/run_service_pb';
import { type Handler, requirePerson } from '@writ/rpc';
import { readRun } from '../../app/run/read-runs.ts';
import type { SupervisorContext } from '../../context.ts';
import { runMessage } from '../../wire/run.ts';

/** GetRun: returns a run of the caller's tenant; a run of another tenant is reported as not found (SYS-6). */
export function getRun(context: SupervisorContext): Handler<typeof RunService.method.getRun> {
  return async ({ runId }, call) => {
    const { run, ...options } = await readRun(context, {
      tenant: requirePerson(call).tenant,
      runId,
    });
    return { run: runMessage(run, options) };
  };
}
