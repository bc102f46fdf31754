import type { RunService } from '@writ/contracts/writ/run/v1/run_service_pb';
import { type Handler, requirePerson } from '@writ/rpc';
import { followRun } from '../../app/run/watch-run.ts';
import type { SupervisorContext } from '../../context.ts';

/**
 * WatchRun: replays a run's timeline from a sequence, then follows it until its result, optionally with live
 * progress.
 */
export function watchRun(context: SupervisorContext): Handler<typeof RunService.method.watchRun> {
  return async function* (request, call) {
    const { tenant } = requirePerson(call);
    const key = { tenant, runId: request.runId };
    const options = { after: Number(request.afterSequence), progress: request.progress };
    for await (const event of followRun(context, key, options, call.signal)) {
      yield { event };
    }
  };
}
