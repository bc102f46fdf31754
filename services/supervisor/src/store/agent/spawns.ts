import type { AgentKey, AgentRef, CallKey, RunKey } from '@writ/kernel';
import type { RowOf } from '@writ/store';
import { runTopic } from '../change/changes.ts';
import { noteChange } from '../change/commit-notes.ts';
import type { spawns } from '../schema/agent.ts';
import type { SupervisorReader, SupervisorTransaction } from '../supervisor-store.ts';

/** An approved delegation and its outcome. */
export type SpawnRow = RowOf<typeof spawns>;

/** Inserts a spawn (SUP-9). */
export async function insertSpawn(trx: SupervisorTransaction, spawn: SpawnRow): Promise<void> {
  await trx.insertInto('spawns').values(spawn).execute();
}

/** The spawn of a parent's call; undefined if there is none. */
export async function findSpawn(db: SupervisorReader, key: CallKey): Promise<SpawnRow | undefined> {
  return await ofRun(db, key)
    .where('parent_instance', '=', key.instance)
    .where('call_id', '=', key.callId)
    .executeTakeFirst();
}

/** The spawn of a child; undefined if there is none. */
export async function findSpawnOf(
  db: SupervisorReader,
  child: AgentKey,
): Promise<SpawnRow | undefined> {
  return await ofRun(db, child).where('child_instance', '=', child.instance).executeTakeFirst();
}

/** Returns the spawn of the child that its parent ended with this call_id; undefined if there is none. */
export async function findEndedUnder(
  db: SupervisorReader,
  key: CallKey,
): Promise<SpawnRow | undefined> {
  return await ofRun(db, key)
    .where('parent_instance', '=', key.instance)
    .where('end_call_id', '=', key.callId)
    .executeTakeFirst();
}

/** Every spawn of a run. */
export async function spawnsOf(db: SupervisorReader, run: RunKey): Promise<SpawnRow[]> {
  return await ofRun(db, run).execute();
}

function ofRun(db: SupervisorReader, { tenant, runId }: RunKey) {
  return db
    .selectFrom('spawns')
    .selectAll()
    .where('tenant', '=', tenant)
    .where('run_id', '=', runId);
}

/** Updates the spawn of a child, and notifies the watchers of its run. */
export async function saveSpawn(
  trx: SupervisorTransaction,
  child: AgentKey,
  changes: Partial<SpawnRow>,
): Promise<void> {
  await trx
    .updateTable('spawns')
    .set(changes)
    .where('tenant', '=', child.tenant)
    .where('run_id', '=', child.runId)
    .where('child_instance', '=', child.instance)
    .execute();
  noteChange(trx, runTopic(child));
}

/** Marks a pending spawn as failed; leaves any other unchanged. */
export async function failSpawn(
  trx: SupervisorTransaction,
  child: AgentKey,
  reason: string,
): Promise<void> {
  const spawn = await findSpawnOf(trx, child);
  if (spawn?.state !== 'pending') return;
  await saveSpawn(trx, child, { state: 'failed', why_not: reason });
}

/** The child of a spawn. */
export function childKeyOf({ tenant, run_id, child_instance }: SpawnRow): AgentKey {
  return { tenant, runId: run_id, instance: child_instance };
}

/** Decodes a JSON array of agents; empty for null. */
export function agentsFrom(json: string | null): AgentRef[] {
  return json === null ? [] : (JSON.parse(json) as AgentRef[]);
}
