import type { RunService } from '@writ/contracts/writ/run/v1/run_service_pb';
import { InvalidRequestError } from '@writ/kernel';
import type { Handler } from '@writ/rpc';
import { startRun } from '../../app/run/start-run.ts';
import { followRun } from '../../app/run/watch-run.ts';
import type { SupervisorContext } from '../../context.ts';

/**
 * RunAgent: combines StartRun and WatchRun in one call; a repeated request watches the run that the first request
 * started.
 */
export function runAgent(context: SupervisorContext): Handler<typeof RunService.method.runAgent> {
  return async function* (request, call) {
    if (request.start === undefined) {
      throw new InvalidRequestError('FIELD_REQUIRED', 'start is required.', { field: 'start' });
    }
    const run = await startRun(context, request.start, call);
    const key = { tenant: run.tenant, runId: run.run_id };
    const options = { after: 0, progress: request.progress };
    for await (const event of followRun(context, key, options, call.signal)) {
      yield { runId: run.run_id, event };
    }
  };
}
