import type { RunService } from '@writ/contracts/writ/run/v1/run_service_pb';
import { type Handler, requirePerson } from '@writ/rpc';
import { watchRuns as watch } from '../../app/run/watch-runs.ts';
import type { SupervisorContext } from '../../context.ts';
import { runMessage } from '../../wire/run.ts';

/** WatchRuns: streams the runs of a tenant that start, change their state or end, without traces and histories. */
export function watchRuns(context: SupervisorContext): Handler<typeof RunService.method.watchRuns> {
  return async function* (_, call) {
    const { tenant } = requirePerson(call);
    for await (const changed of watch(context, tenant, call.signal)) {
      if (changed === 'heartbeat') {
        yield { heartbeat: true };
        continue;
      }
      const { run, lastSequence } = changed;
      yield { run: runMessage(run, { lastSequence, brief: true }) };
    }
  };
}
