import type { RunService } from '@writ/contracts/writ/run/v1/run_service_pb';
import { type Handler, requirePerson } from '@writ/rpc';
import { closeRun as close } from '../../app/run/close-run.ts';
import type { SupervisorContext } from '../../context.ts';
import { runMessage } from '../../wire/run.ts';

/**
 * CloseRun: ends the run of an external agent with the stop reason `closed`; returns the run, which is still ENDING or
 * already in a terminal state (AP-1).
 */
export function closeRun(context: SupervisorContext): Handler<typeof RunService.method.closeRun> {
  return async (request, call) => {
    const { run, lastSequence } = await close(context, requirePerson(call), request);
    return { run: runMessage(run, { lastSequence }) };
  };
}
