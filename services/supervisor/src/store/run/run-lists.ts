import type { StoredRunState } from '../schema/run.ts';
import type { SupervisorReader } from '../supervisor-store.ts';
import type { RunRow } from './runs.ts';

/** Filter and position of a page of runs. */
export interface RunFilter {
  readonly tenant: string;
  /** Empty = all. */
  readonly states: readonly StoredRunState[];
  /** Empty = any. */
  readonly agent: string;
  readonly sessionId: string;
  /** Labels that a run must have; all of them must match. */
  readonly labels: Readonly<Record<string, string>>;
  /** Time of creation: at or after `since`, before `until`. */
  readonly since: Date | undefined;
  readonly until: Date | undefined;
  readonly oldestFirst: boolean;
  /** The last row of the previous page. */
  readonly after: { readonly createdAt: Date; readonly runId: string } | undefined;
  readonly limit: number;
}

/** The runs of a page, by creation time. */
export async function selectRuns(db: SupervisorReader, filter: RunFilter): Promise<RunRow[]> {
  return await runPage(db, filter).execute();
}

/** The query of {@link selectRuns}; an index provides its order for every filter except state and label. */
export function runPage(db: SupervisorReader, filter: RunFilter) {
  const { tenant, states, agent, sessionId, labels, since, until, oldestFirst, after, limit } =
    filter;
  let query = db.selectFrom('runs').selectAll().where('tenant', '=', tenant);
  if (states.length > 0) query = query.where('state', 'in', states);
  if (agent !== '') query = query.where('agent_name', '=', agent);
  if (sessionId !== '') query = query.where('session_id', '=', sessionId);
  if (since !== undefined) query = query.where('created_at', '>=', since);
  if (until !== undefined) query = query.where('created_at', '<', until);
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
  return query.orderBy('created_at', direction).orderBy('run_id', direction).limit(limit);
}

/**
 * Returns the id, state and change time of each run of a tenant with a change at or after `since`, oldest change first.
 */
export async function runsChangedSince(
  db: SupervisorReader,
  tenant: string,
  since: Date,
): Promise<Pick<RunRow, 'run_id' | 'state' | 'changed_at'>[]> {
  return await db
    .selectFrom('runs')
    .select(['run_id', 'state', 'changed_at'])
    .where('tenant', '=', tenant)
    .where('changed_at', '>=', since)
    .orderBy('changed_at')
    .orderBy('run_id')
    .execute();
}

/** The runs of a tenant with these ids, in no particular order. */
export async function runsByIds(
  db: SupervisorReader,
  tenant: string,
  runIds: readonly string[],
): Promise<RunRow[]> {
  return await db
    .selectFrom('runs')
    .selectAll()
    .where('tenant', '=', tenant)
    .where('run_id', 'in', runIds)
    .execute();
}
