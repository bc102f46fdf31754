import { timestampDate } from '@bufbuild/protobuf/wkt';
import type { RunService } from '@writ/contracts/writ/run/v1/run_service_pb';
import { type Handler, requirePerson } from '@writ/rpc';
import { listRuns as list } from '../../app/run/read-runs.ts';
import type { SupervisorContext } from '../../context.ts';
import { pageAt, readPage, readPageAt } from '../../wire/page-token.ts';
import { runMessage, statesFrom } from '../../wire/run.ts';

/** ListRuns: a tenant's runs, newest first unless requested otherwise, without traces and histories. */
export function listRuns(context: SupervisorContext): Handler<typeof RunService.method.listRuns> {
  return async (request, call) => {
    const { tenant } = requirePerson(call);
    const { agent, sessionId, labels, oldestFirst } = request;
    const since = request.startTime && timestampDate(request.startTime);
    const until = request.endTime && timestampDate(request.endTime);
    const states = statesFrom(request.states);
    const filters = { tenant, states, agent, sessionId, labels, oldestFirst };
    const times = { since: since?.toISOString() ?? '', until: until?.toISOString() ?? '' };
    const { page, nextPageToken } = await readPage(request, {
      filters: { ...filters, ...times },
      parts: 2,
      read: (position, limit) => {
        const at = readPageAt(position);
        const after = at && { createdAt: at.time, runId: at.id };
        return list(context, { ...filters, since, until, after, limit });
      },
      positionOf: ({ run }) => pageAt(run.created_at, run.run_id),
    });
    const runs = page.map(({ run, lastSequence }) =>
      runMessage(run, { lastSequence, brief: true }),
    );
    return { runs, nextPageToken };
  };
}
