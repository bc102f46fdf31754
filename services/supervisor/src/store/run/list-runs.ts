import type { StoredRunState } from '../schema/run-tables.ts';
import type { SupervisorReader } from '../supervisor-store.ts';
import type { RunRow } from './runs.ts';

/** Which runs of a tenant are wanted, and from where on. */
export interface RunFilter {
  readonly tenant: string;
  /** Empty = all. */
  readonly states: readonly StoredRunState[];
  /** Empty = any. */
  readonly agent: string;
  readonly sessionId: string;
  /** All of them must fit. */
  readonly labels: Readonly<Record<string, string>>;
  readonly oldestFirst: boolean;
  /** The row after which the page begins. */
  readonly after: { readonly createdAt: Date; readonly runId: string } | undefined;
  readonly limit: number;
}

/** The runs that a filter lets through, by the time they were made. */
export async function listRuns(db: SupervisorReader, filter: RunFilter): Promise<RunRow[]> {
  const { tenant, states, agent, sessionId, labels, oldestFirst, after, limit } = filter;
  let query = db.selectFrom('runs').selectAll().where('tenant', '=', tenant);
  if (states.length > 0) query = query.where('state', 'in', states);
  if (agent !== '') query = query.where('agent_name', '=', agent);
  if (sessionId !== '') query = query.where('session_id', '=', sessionId);
  for (const [label, value] of Object.entries(labels)) {
    query = query.where('run_id', 'in', (inner) =>
      inner
        .selectFrom('run_labels')
        .select('run_id')
        .where('tenant', '=', tenant)
        .where('label', '=', label)
        .where('value', '=', value),
    );
  }
  const beyond = oldestFirst ? '>' : '<';
  if (after !== undefined) {
    query = query.where((row) =>
      row.or([
        row('created_at', beyond, after.createdAt),
        row.and([row('created_at', '=', after.createdAt), row('run_id', beyond, after.runId)]),
      ]),
    );
  }
  const direction = oldestFirst ? 'asc' : 'desc';
  return await query
    .orderBy('created_at', direction)
    .orderBy('run_id', direction)
    .limit(limit)
    .execute();
}
