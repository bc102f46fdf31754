import type { AgentKey } from '@writ/kernel';
import { prepareQuery } from '@writ/store';
import type { Selectable } from 'kysely';
import { agentColumns } from './keys.ts';
import type { SnapshotsTable } from './schema.ts';
import type { WorkerReader, WorkerTransaction } from './worker-store.ts';

/** A row of `snapshots`. */
export type SnapshotRow = Selectable<SnapshotsTable>;

/** Returns the snapshot of an agent, if any. */
export async function findSnapshot(
  db: WorkerReader,
  key: AgentKey,
): Promise<SnapshotRow | undefined> {
  const { rows } = await selectSnapshot(db, key);
  return rows[0];
}

const selectSnapshot = prepareQuery((db: WorkerReader, key: AgentKey) =>
  db
    .selectFrom('snapshots')
    .selectAll()
    .where('tenant', '=', key.tenant)
    .where('run_id', '=', key.runId)
    .where('instance', '=', key.instance),
);

/**
 * Replaces the snapshot of an agent. In the same transaction, the agent's row must be updated under
 * its lease first.
 */
export async function saveSnapshot(trx: WorkerTransaction, snapshot: SnapshotRow): Promise<void> {
  await trx
    .insertInto('snapshots')
    .values(snapshot)
    .onConflict((conflict) =>
      conflict.columns(['tenant', 'run_id', 'instance']).doUpdateSet(snapshot),
    )
    .execute();
}

/** Appends items; `position` is the number of the first appended item. */
export async function appendItems(
  trx: WorkerTransaction,
  key: AgentKey,
  position: number,
  items: readonly unknown[],
): Promise<void> {
  if (items.length === 0) return;
  await trx
    .insertInto('snapshot_items')
    .values({ ...agentColumns(key), position, items: JSON.stringify(items) })
    .execute();
}

/** Returns an agent's items from number `from` on, in order. */
export async function loadItems(db: WorkerReader, key: AgentKey, from: number): Promise<unknown[]> {
  const last = await db
    .selectFrom('snapshot_items')
    .select('position')
    .where((eb) => eb.and(agentColumns(key)))
    .where('position', '<=', from)
    .orderBy('position', 'desc')
    .limit(1)
    .executeTakeFirst();
  const first = last?.position ?? 0;
  const rows = await db
    .selectFrom('snapshot_items')
    .select('items')
    .where((eb) => eb.and(agentColumns(key)))
    .where('position', '>=', first)
    .orderBy('position')
    .execute();
  return rows.flatMap(({ items }) => JSON.parse(items) as unknown[]).slice(from - first);
}
