import type { RunService } from '@writ/contracts/writ/run/v1/run_service_pb';
import { type Handler, requirePerson } from '@writ/rpc';
import { cancelRun as cancel } from '../../app/run/cancel-run.ts';
import type { SupervisorContext } from '../../context.ts';
import { runMessage } from '../../wire/run.ts';

/**
 * CancelRun: ends a run with `cancelled`, unless it already has an ending; returns the run, which is still ENDING or
 * already in a terminal state (SUP-8, RT-4).
 */
export function cancelRun(context: SupervisorContext): Handler<typeof RunService.method.cancelRun> {
  return async (request, call) => {
    const { run, lastSequence } = await cancel(context, requirePerson(call), request);
    return { run: runMessage(run, { lastSequence }) };
  };
}
