import type { AgentKey, AgentRef, CallKey, RunKey } from '@writ/kernel';
import type { Selectable } from 'kysely';
import { noteChange, runTopic } from '../change/changes.ts';
import type { SpawnsTable } from '../schema/run-tables.ts';
import type { SupervisorReader, SupervisorTransaction } from '../supervisor-store.ts';

/** One approved delegation, and what became of it. */
export type SpawnRow = Selectable<SpawnsTable>;

/** Records that a child is wanted (SUP-9). */
export async function insertSpawn(trx: SupervisorTransaction, spawn: SpawnRow): Promise<void> {
  await trx.insertInto('spawns').values(spawn).execute();
}

/** The spawn that a parent's call asked for; undefined when it asked for none. */
export async function findSpawn(db: SupervisorReader, key: CallKey): Promise<SpawnRow | undefined> {
  return await db
    .selectFrom('spawns')
    .selectAll()
    .where('tenant', '=', key.tenant)
    .where('run_id', '=', key.runId)
    .where('parent_instance', '=', key.instance)
    .where('call_id', '=', key.callId)
    .executeTakeFirst();
}

/** The spawn that made, or will make, a child; undefined when none did. */
export async function findSpawnOf(
  db: SupervisorReader,
  child: AgentKey,
): Promise<SpawnRow | undefined> {
  return await db
    .selectFrom('spawns')
    .selectAll()
    .where('tenant', '=', child.tenant)
    .where('run_id', '=', child.runId)
    .where('child_instance', '=', child.instance)
    .executeTakeFirst();
}

/** The spawn that a parent ended under a call_id; undefined when it ended none. */
export async function findEndedUnder(
  db: SupervisorReader,
  key: CallKey,
): Promise<SpawnRow | undefined> {
  return await db
    .selectFrom('spawns')
    .selectAll()
    .where('tenant', '=', key.tenant)
    .where('run_id', '=', key.runId)
    .where('parent_instance', '=', key.instance)
    .where('end_call_id', '=', key.callId)
    .executeTakeFirst();
}

/** Every spawn of a run. */
export async function spawnsOf(
  db: SupervisorReader,
  { tenant, runId }: RunKey,
): Promise<SpawnRow[]> {
  return await db
    .selectFrom('spawns')
    .selectAll()
    .where('tenant', '=', tenant)
    .where('run_id', '=', runId)
    .execute();
}

/** Writes some columns of the spawn of a child, and tells whoever waits for it. */
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

/** Gives up on a spawn that is still pending; what it has become already stands. */
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

/** Agents as a row's JSON names them; none when there is no JSON. */
export function agentsFrom(json: string | null): AgentRef[] {
  return json === null ? [] : (JSON.parse(json) as AgentRef[]);
}
