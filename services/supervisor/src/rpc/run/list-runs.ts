import type { RunService } from '@writ/contracts/writ/run/v1/run_service_pb';
import { type Handler, requirePerson } from '@writ/rpc';
import type { SupervisorContext } from '../../context.ts';
import { pageTime, pageToken, readPageToken } from '../../domain/run/page-token.ts';
import { listRuns as readRuns } from '../../store/run/runs.ts';
import { lastSequences } from '../../store/run/timeline.ts';
import { runMessage, statesFrom } from '../../wire/run.ts';

const DEFAULT_PAGE = 50;

/** ListRuns: a tenant's runs, newest first unless requested otherwise, without traces and histories. */
export function listRuns(context: SupervisorContext): Handler<typeof RunService.method.listRuns> {
  return async (request, call) => {
    const { tenant } = requirePerson(call);
    const { agent, sessionId, labels, oldestFirst } = request;
    const states = statesFrom(request.states);
    const filters = { tenant, states, agent, sessionId, labels, oldestFirst };
    const limit = request.pageSize === 0 ? DEFAULT_PAGE : request.pageSize;
    const [createdAt = '', runId = ''] = readPageToken(request.pageToken, filters, 2) ?? [];
    const after = runId === '' ? undefined : { createdAt: pageTime(createdAt), runId };
    const rows = await readRuns(context.store.db, { ...filters, after, limit: limit + 1 });
    const page = rows.slice(0, limit);
    const last = page.at(-1);
    const nextPageToken =
      rows.length > limit && last !== undefined
        ? pageToken([last.created_at.toISOString(), last.run_id], filters)
        : '';
    const sequences = await lastSequences(
      context.store.db,
      tenant,
      page.map((run) => run.run_id),
    );
    const runs = page.map((run) =>
      runMessage(run, { lastSequence: sequences.get(run.run_id) ?? 0, brief: true }),
    );
    return { runs, nextPageToken };
  };
}
