import type { RunService } from '@writ/contracts/writ/run/v1/run_service_pb';
import type { Handler } from '@writ/rpc';
import { viewRun } from '../../app/run/read-runs.ts';
import { startRun as createRun } from '../../app/run/start-run.ts';
import type { SupervisorContext } from '../../context.ts';
import { runMessage } from '../../wire/run.ts';

/** StartRun: answers once the run and the order that starts it are durable. */
export function startRun(context: SupervisorContext): Handler<typeof RunService.method.startRun> {
  return async (request, call) => {
    const { run, lastSequence } = await viewRun(context, await createRun(context, request, call));
    return { run: runMessage(run, { lastSequence }) };
  };
}
