import { prepareQuery } from '@writ/store';
import type { Selectable } from 'kysely';
import { noteChange, type RunKey, runEndTopic, runTopic } from '../change/changes.ts';
import type { RunsTable, StoredRunState } from '../schema/run-tables.ts';
import type { SupervisorReader, SupervisorTransaction } from '../supervisor-store.ts';
import { runNotFound } from './timeline.ts';

/** One run as it stands. */
export type RunRow = Selectable<RunsTable>;

/** Records a new run. */
export async function insertRun(trx: SupervisorTransaction, run: RunRow): Promise<void> {
  await trx.insertInto('runs').values(run).execute();
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
  return (await selectRun(db, key)).rows[0];
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
  noteChange(trx, runTopic(key));
  if (changes.ended_at instanceof Date) noteChange(trx, runEndTopic(key));
}

/** Moves a run to another state, unless it is over: nothing leaves a terminal state (RT-4). */
export async function setRunState(
  trx: SupervisorTransaction,
  key: RunKey,
  state: StoredRunState,
): Promise<void> {
  await trx
    .updateTable('runs')
    .set({ state })
    .where('tenant', '=', key.tenant)
    .where('run_id', '=', key.runId)
    .where('ended_at', 'is', null)
    .execute();
  noteChange(trx, runTopic(key));
}

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
