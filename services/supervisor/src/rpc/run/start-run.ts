import type { RunService } from '@writ/contracts/writ/run/v1/run_service_pb';
import type { Handler } from '@writ/rpc';
import { startRun as createRun } from '../../app/run/start-run.ts';
import type { SupervisorContext } from '../../context.ts';
import { lastSequence } from '../../store/run/timeline.ts';
import { runMessage } from '../../wire/run.ts';

/** StartRun: answers once the run and the order that starts it are durable. */
export function startRun(context: SupervisorContext): Handler<typeof RunService.method.startRun> {
  return async (request, call) => {
    const run = await createRun(context, request, call);
    const key = { tenant: run.tenant, runId: run.run_id };
    return { run: runMessage(run, { lastSequence: await lastSequence(context.store.db, key) }) };
  };
}
