import { OverloadedError, type RunKey } from '@writ/kernel';
import { prepareQuery, RowCache } from '@writ/store';
import type { Selectable } from 'kysely';
import { noteChange, runEndTopic, runTopic } from '../change/changes.ts';
import type { RunsTable, StoredRunState } from '../schema/run-tables.ts';
import type { SupervisorReader, SupervisorTransaction } from '../supervisor-store.ts';
import { closeTimeline, runNotFound, startTimeline } from './timeline.ts';

/** One run as it stands. */
export type RunRow = Selectable<RunsTable>;

/** Records a new run. */
export async function insertRun(trx: SupervisorTransaction, run: RunRow): Promise<void> {
  await trx.insertInto('runs').values(run).execute();
  const key = { tenant: run.tenant, runId: run.run_id };
  cache.set(trx, nameOf(key), run);
  startTimeline(trx, key);
}

/** Rows of live runs: every statement that changes one is in this file. */
const cache = new RowCache<RunRow>();

function nameOf({ tenant, runId }: RunKey): string {
  return `${tenant}/${runId}`;
}

/** Keeps a row as it stands after `changes`; drops it once the run is over (CO-2). */
function keep(trx: SupervisorTransaction, key: RunKey, changes: Partial<RunRow>): void {
  const row = cache.get(trx, nameOf(key));
  if (row === undefined) return;
  const changed = { ...row, ...changes };
  if (changed.ended_at === null) cache.set(trx, nameOf(key), changed);
  else cache.delete(trx, nameOf(key));
}

/** Records the labels by which a run can be found. */
export async function insertRunLabels(
  trx: SupervisorTransaction,
  { tenant, runId }: RunKey,
  labels: Readonly<Record<string, string>>,
): Promise<void> {
  const rows = Object.entries(labels).map(([label, value]) => ({
    tenant,
    run_id: runId,
    label,
    value,
  }));
  if (rows.length > 0) await trx.insertInto('run_labels').values(rows).execute();
}

/**
 * Reads a run of a tenant; another tenant's does not exist (SYS-6).
 * @throws NotFoundError RUN_NOT_FOUND
 */
export async function loadRun(db: SupervisorReader, key: RunKey): Promise<RunRow> {
  const row = await findRun(db, key);
  if (row === undefined) throw runNotFound(key.runId);
  return row;
}

/** A run of a tenant, undefined when there is none. */
export async function findRun(db: SupervisorReader, key: RunKey): Promise<RunRow | undefined> {
  const known = cache.get(db, nameOf(key));
  if (known !== undefined) return known;
  const [row] = (await selectRun(db, key)).rows;
  if (row !== undefined && row.ended_at === null) cache.set(db, nameOf(key), row);
  return row;
}

const selectRun = prepareQuery((db: SupervisorReader, key: RunKey) =>
  db
    .selectFrom('runs')
    .selectAll()
    .where('tenant', '=', key.tenant)
    .where('run_id', '=', key.runId),
);

/** The run that a request started; undefined when it started none. */
export async function findRunByRequest(
  db: SupervisorReader,
  tenant: string,
  createdBy: string,
  requestId: string,
): Promise<RunRow | undefined> {
  return await db
    .selectFrom('runs')
    .selectAll()
    .where('tenant', '=', tenant)
    .where('created_by', '=', createdBy)
    .where('request_id', '=', requestId)
    .executeTakeFirst();
}

/** Writes some columns of a run. */
export async function saveRun(
  trx: SupervisorTransaction,
  key: RunKey,
  changes: Partial<RunRow>,
): Promise<void> {
  await trx
    .updateTable('runs')
    .set(changes)
    .where('tenant', '=', key.tenant)
    .where('run_id', '=', key.runId)
    .execute();
  keep(trx, key, changes);
  noteChange(trx, runTopic(key));
  if (changes.ended_at instanceof Date) {
    await closeTimeline(trx, key);
    noteChange(trx, runEndTopic(key));
  }
}

/** Moves a run to another state, unless it is over: nothing leaves a terminal state (RT-4). */
export async function setRunState(
  trx: SupervisorTransaction,
  key: RunKey,
  state: StoredRunState,
): Promise<void> {
  await updateState(trx, { ...key, state });
  // A row that is kept is of a run that has not ended.
  keep(trx, key, { state });
  noteChange(trx, runTopic(key));
}

const updateState = prepareQuery(
  (db: SupervisorReader, change: RunKey & { readonly state: StoredRunState }) =>
    db
      .updateTable('runs')
      .set({ state: change.state })
      .where('tenant', '=', change.tenant)
      .where('run_id', '=', change.runId)
      .where('ended_at', 'is', null),
);

/** Counts a tool call of a run as approved. */
export async function countApprovedCall(trx: SupervisorTransaction, key: RunKey): Promise<void> {
  await addApprovedCall(trx, key);
  const row = cache.get(trx, nameOf(key));
  if (row !== undefined) keep(trx, key, { approved_calls: row.approved_calls + 1 });
}

const addApprovedCall = prepareQuery((db: SupervisorReader, { tenant, runId }: RunKey) =>
  db
    .updateTable('runs')
    .set((row) => ({ approved_calls: row('approved_calls', '+', 1) }))
    .where('tenant', '=', tenant)
    .where('run_id', '=', runId),
);

/** Runs of every tenant that live past their deadline and have no ending yet. */
export async function overdueRuns(db: SupervisorReader, now: Date): Promise<RunRow[]> {
  return await db
    .selectFrom('runs')
    .selectAll()
    .where('ended_at', 'is', null)
    .where('deadline_at', '<=', now)
    .where('state', '!=', 'ENDING')
    .orderBy('deadline_at')
    .execute();
}

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

/**
 * Checks, in the transaction that would record another run, how many of its tenant are under way;
 * parked and ending ones count, too.
 * @param most undefined = unlimited
 * @throws OverloadedError RUN_QUOTA_EXCEEDED naming setting and limit
 */
export async function assertRunQuota(
  trx: SupervisorTransaction,
  tenant: string,
  most: number | undefined,
): Promise<void> {
  if (most === undefined) return;
  const counted = await trx
    .selectFrom('runs')
    .select((row) => row.fn.countAll().as('runs'))
    .where('tenant', '=', tenant)
    .where('ended_at', 'is', null)
    .executeTakeFirstOrThrow();
  const used = Number(counted.runs);
  if (used < most) return;
  throw new OverloadedError(
    'RUN_QUOTA_EXCEEDED',
    `Tenant ${tenant} has ${used} runs under way, and WRIT_TENANT_MAX_RUNS allows ${most}; start another when one has ended.`,
    { setting: 'WRIT_TENANT_MAX_RUNS', used: String(used), limit: String(most) },
  );
}
