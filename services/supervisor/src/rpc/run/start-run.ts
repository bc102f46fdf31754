import type { RunService } from '@writ/contracts/writ/run/v1/run_service_pb';
import type { Handler } from '@writ/rpc';
import { startRun as startRunForCaller } from '../../app/run/start-run.ts';
import type { SupervisorContext } from '../../context.ts';
import { runMessage } from '../../wire/run.ts';

/** StartRun: answers once the run and the order that starts it are durable. */
export function startRun(context: SupervisorContext): Handler<typeof RunService.method.startRun> {
  return async (request, call) => {
    const run = await startRunForCaller(context, request, call);
    return { run: runMessage(run) };
  };
}
