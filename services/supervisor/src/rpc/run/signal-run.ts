import type { RunService } from '@writ/contracts/writ/run/v1/run_service_pb';
import { type Handler, requirePerson } from '@writ/rpc';
import { signalRun as signal } from '../../app/run/signal-run.ts';
import type { SupervisorContext } from '../../context.ts';

/** SignalRun: sends a signal to the worker; returns after the worker has stored it. */
export function signalRun(context: SupervisorContext): Handler<typeof RunService.method.signalRun> {
  return async (request, call) => ({
    accepted: await signal(context, requirePerson(call), request),
  });
}
