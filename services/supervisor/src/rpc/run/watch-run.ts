import type { RunService } from '@writ/contracts/writ/run/v1/run_service_pb';
import { type Handler, requirePerson } from '@writ/rpc';
import type { SupervisorContext } from '../../context.ts';
import { followRun } from './follow-run.ts';

/** WatchRun: replays a run's timeline from any place, then follows it to its result. */
export function watchRun(context: SupervisorContext): Handler<typeof RunService.method.watchRun> {
  return async function* (request, call) {
    const { tenant } = requirePerson(call);
    const key = { tenant, runId: request.runId };
    for await (const event of followRun(context, key, Number(request.afterSequence), call.signal)) {
      yield { event };
    }
  };
}
