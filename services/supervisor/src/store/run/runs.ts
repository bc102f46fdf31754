import { NotFoundError, type RunKey } from '@writ/kernel';
import {
  pickColumns,
  preparePerColumns,
  prepareQuery,
  prepareWrite,
  RowCache,
  type RowOf,
} from '@writ/store';
import { runEndTopic, runsTopic, runTopic } from '../change/changes.ts';
import { noteChange, notesOf } from '../change/commit-notes.ts';
import { dropFacts, startFacts } from '../review/facts.ts';
import { runs, type StoredRunState } from '../schema/run.ts';
import type { SupervisorReader, SupervisorTransaction } from '../supervisor-store.ts';
import { closeTimeline, startTimeline } from './timeline.ts';

/** The row of a run. */
export type RunRow = RowOf<typeof runs>;

/** Inserts a run. */
export async function insertRun(trx: SupervisorTransaction, run: RunRow): Promise<void> {
  await insertRow(trx, run);
  const key = { tenant: run.tenant, runId: run.run_id };
  cache.set(trx, nameOf(key), run);
  noteChange(trx, runsTopic(run.tenant));
  startTimeline(trx, key);
  startFacts(trx, key);
}

const insertRow = prepareWrite((db: SupervisorReader, run: RunRow) =>
  db.insertInto('runs').values(pickColumns(run, runs.columns)),
);

/** Rows of live runs. All statements that change the table are in this file. */
const cache = new RowCache<RunRow>({ areLocked: true });

function nameOf({ tenant, runId }: RunKey): string {
  return `${tenant}/${runId}`;
}

/** Updates the cached row after `changes`; removes it from the cache when the run has ended (CO-2). */
function keep(trx: SupervisorTransaction, key: RunKey, changes: Partial<RunRow>): void {
  const row = cache.get(trx, nameOf(key));
  if (row === undefined) return;
  const changed = { ...row, ...changes };
  if (changed.ended_at === null) cache.set(trx, nameOf(key), changed);
  else cache.delete(trx, nameOf(key));
}

/** Inserts the labels of a run. */
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
 * Loads a run of a tenant; a run of another tenant is reported as not found (SYS-6).
 * @throws NotFoundError RUN_NOT_FOUND
 */
export async function loadRun(db: SupervisorReader, key: RunKey): Promise<RunRow> {
  const row = await findRun(db, key);
  if (row === undefined) throw runNotFound(key.runId);
  return row;
}

/** The run, undefined if it does not exist for the tenant. */
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

/**
 * Whether a run has ended.
 * @throws NotFoundError RUN_NOT_FOUND
 */
export async function hasEnded(db: SupervisorReader, key: RunKey): Promise<boolean> {
  const [row] = (await selectEnd(db, key)).rows;
  if (row === undefined) throw runNotFound(key.runId);
  return row.ended_at !== null;
}

const selectEnd = prepareQuery((db: SupervisorReader, key: RunKey) =>
  db
    .selectFrom('runs')
    .select('ended_at')
    .where('tenant', '=', key.tenant)
    .where('run_id', '=', key.runId),
);

/** The run that a request started; undefined if there is none. */
export async function findRunByRequest(
  db: SupervisorReader,
  tenant: string,
  createdBy: string,
  requestId: string,
): Promise<RunRow | undefined> {
  return (await selectByRequest(db, { tenant, createdBy, requestId })).rows[0];
}

const selectByRequest = prepareQuery(
  (db: SupervisorReader, request: Readonly<Record<'tenant' | 'createdBy' | 'requestId', string>>) =>
    db
      .selectFrom('runs')
      .selectAll()
      .where('tenant', '=', request.tenant)
      .where('created_by', '=', request.createdBy)
      .where('request_id', '=', request.requestId),
);

/** An agent key, by its public part. */
export interface AgentKeyId {
  readonly tenant: string;
  readonly keyId: string;
}

/** The runs of an agent key that can take requests, oldest first (AP-1). */
export async function openRunsOf(
  db: SupervisorReader,
  { tenant, keyId }: AgentKeyId,
): Promise<RunRow[]> {
  return await db
    .selectFrom('runs')
    .selectAll()
    .where('tenant', '=', tenant)
    .where('key_id', '=', keyId)
    .where('ended_at', 'is', null)
    .where('state', '!=', 'ENDING')
    .orderBy('created_at')
    .execute();
}

/** The latest run of a conversation of an agent key; undefined if there is none. */
export async function latestRunOf(
  db: SupervisorReader,
  { tenant, keyId, conversation }: AgentKeyId & { readonly conversation: string },
): Promise<RunRow | undefined> {
  return await db
    .selectFrom('runs')
    .selectAll()
    .where('tenant', '=', tenant)
    .where('key_id', '=', keyId)
    .where('conversation', '=', conversation)
    .orderBy('created_at', 'desc')
    .orderBy('run_id', 'desc')
    .limit(1)
    .executeTakeFirst();
}

/** Updates columns of a run; changes that contain `state` must also contain `changed_at`. */
export async function saveRun(
  trx: SupervisorTransaction,
  key: RunKey,
  changes: Partial<RunRow>,
): Promise<void> {
  await updateRun(changes)(trx, { ...changes, key_tenant: key.tenant, key_run: key.runId });
  keep(trx, key, changes);
  if (changes.state !== undefined) noteState(trx, key, changes.state);
  noteChange(trx, runTopic(key));
  if (changes.ended_at instanceof Date) {
    await closeTimeline(trx, key);
    dropFacts(trx, key);
    noteChange(trx, runEndTopic(key));
  }
}

interface RunChange extends Partial<RunRow> {
  readonly key_tenant: string;
  readonly key_run: string;
}

const updateRun = preparePerColumns((columns: readonly (keyof RunRow)[]) =>
  prepareWrite((db: SupervisorReader, change: RunChange) =>
    db
      .updateTable('runs')
      .set(pickColumns(change, columns))
      .where('tenant', '=', change.key_tenant)
      .where('run_id', '=', change.key_run),
  ),
);

function noteState(
  trx: SupervisorTransaction,
  { tenant, runId }: RunKey,
  state: StoredRunState,
): void {
  notesOf(trx).runStates.push({ tenant, runId, state });
  noteChange(trx, runsTopic(tenant));
}

/** Moves a run to another state, unless it has ended: a terminal state is final (RT-4). */
export async function setRunState(
  trx: SupervisorTransaction,
  key: RunKey,
  state: StoredRunState,
  at: Date,
): Promise<void> {
  await updateState(trx, { ...key, state, at });
  // A cached row belongs to a run that has not ended.
  keep(trx, key, { state, changed_at: at });
  noteState(trx, key, state);
  noteChange(trx, runTopic(key));
}

const updateState = prepareWrite(
  (db: SupervisorReader, change: RunKey & { readonly state: StoredRunState; readonly at: Date }) =>
    db
      .updateTable('runs')
      .set({ state: change.state, changed_at: change.at })
      .where('tenant', '=', change.tenant)
      .where('run_id', '=', change.runId)
      .where('ended_at', 'is', null),
);

/** Increments the number of approved tool calls of a run. */
export async function countApprovedCall(trx: SupervisorTransaction, key: RunKey): Promise<void> {
  await addApprovedCall(trx, key);
  const row = cache.get(trx, nameOf(key));
  if (row !== undefined) keep(trx, key, { approved_calls: row.approved_calls + 1 });
}

const addApprovedCall = prepareWrite((db: SupervisorReader, { tenant, runId }: RunKey) =>
  db
    .updateTable('runs')
    .set((row) => ({ approved_calls: row('approved_calls', '+', 1) }))
    .where('tenant', '=', tenant)
    .where('run_id', '=', runId),
);

/** The error for a run that does not exist for its tenant. */
function runNotFound(runId: string): NotFoundError {
  return new NotFoundError('RUN_NOT_FOUND', `Run ${runId} does not exist.`, { run_id: runId });
}
