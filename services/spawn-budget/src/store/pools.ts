import type { StoreDialect } from '@writ/store';
import type { Member } from '../domain/pool/pool.ts';
import { fromMember, fromPool, type StoredPool, toPool } from './pool-rows.ts';
import type { PoolKey, SpawnReader, SpawnTransaction } from './spawn-store.ts';

/** A pool to load, with the agents that are looked at even when they are released. */
export interface PoolRequest extends PoolKey {
  readonly instances?: readonly string[];
}

/** Rows that one statement carries at most: databases bound the parameters of a statement. */
const MAX_ROWS = 500;

/** The key of a pool in maps. */
export function poolKey({ tenant, runId }: PoolKey): string {
  return `${tenant}/${runId}`;
}

/**
 * Loads pools of one tenant with their live members, in the order of keys, and locks them until the
 * transaction ends. What does not exist is not among them.
 */
export async function loadPools(
  trx: SpawnTransaction,
  tenant: string,
  requests: readonly PoolRequest[],
  dialect: StoreDialect,
): Promise<StoredPool[]> {
  const pools: StoredPool[] = [];
  for (const some of chunks(requests)) {
    const runIds = some.map(({ runId }) => runId);
    const named = some.flatMap(({ instances = [] }) => instances);
    const query = trx
      .selectFrom('pools')
      .selectAll()
      .where('tenant', '=', tenant)
      .where('run_id', 'in', runIds)
      .orderBy('run_id');
    // SQLite lets one transaction write at a time; elsewhere replicas take turns at the row.
    const locked = dialect === 'postgres' ? query.forUpdate() : query;
    const rows = await locked.execute();
    const members = await trx
      .selectFrom('members')
      .selectAll()
      .where('tenant', '=', tenant)
      .where('run_id', 'in', runIds)
      .where((where) =>
        where.or([
          where('state', '!=', 'released'),
          ...(named.length === 0 ? [] : [where('instance', 'in', named)]),
        ]),
      )
      .orderBy('acquired')
      .execute();
    const byRun = Map.groupBy(members, ({ run_id }) => run_id);
    for (const row of rows) pools.push(toPool(row, byRun.get(row.run_id) ?? []));
  }
  return pools;
}

/** Records a new pool with its members. */
export async function insertPool(trx: SpawnTransaction, stored: StoredPool): Promise<void> {
  await trx.insertInto('pools').values(fromPool(stored)).execute();
  await saveMembers(trx, stored, [...stored.pool.members.values()]);
}

/** Writes what differs between two states of pools. */
export async function savePools(
  trx: SpawnTransaction,
  changes: readonly { readonly before: StoredPool; readonly after: StoredPool }[],
): Promise<void> {
  const rows: ReturnType<typeof fromMember>[] = [];
  for (const { before, after } of changes) {
    if (differs(before, after)) await updatePool(trx, after);
    for (const [instance, member] of after.pool.members)
      if (before.pool.members.get(instance) !== member) rows.push(fromMember(after, member));
  }
  await upsertMembers(trx, rows);
}

/** Runs with a lease or a deadline that is over, at most `limit`. */
export async function lapsedPools(db: SpawnReader, at: Date, limit: number): Promise<PoolKey[]> {
  const rows = await db
    .selectFrom('members')
    .select(['tenant', 'run_id'])
    .distinct()
    .where('expires_at', '<=', at)
    .limit(limit)
    .execute();
  return rows.map(({ tenant, run_id }) => ({ tenant, runId: run_id }));
}

function differs({ pool: a }: StoredPool, { pool: b }: StoredPool): boolean {
  return (
    a.sequence !== b.sequence ||
    a.closed !== b.closed ||
    a.totalSpawns !== b.totalSpawns ||
    a.totalPauses !== b.totalPauses ||
    a.totalRefusals !== b.totalRefusals
  );
}

async function updatePool(trx: SpawnTransaction, stored: StoredPool): Promise<void> {
  const { sequence, total_spawns, total_pauses, total_refusals, closed_at } = fromPool(stored);
  await trx
    .updateTable('pools')
    .set({ sequence, total_spawns, total_pauses, total_refusals, closed_at })
    .where('tenant', '=', stored.tenant)
    .where('run_id', '=', stored.runId)
    .execute();
}

async function saveMembers(
  trx: SpawnTransaction,
  key: PoolKey,
  members: readonly Member[],
): Promise<void> {
  await upsertMembers(
    trx,
    members.map((member) => fromMember(key, member)),
  );
}

async function upsertMembers(
  trx: SpawnTransaction,
  rows: readonly ReturnType<typeof fromMember>[],
): Promise<void> {
  for (const some of chunks(rows)) {
    await trx
      .insertInto('members')
      .values(some)
      .onConflict((conflict) =>
        conflict.columns(['tenant', 'run_id', 'instance']).doUpdateSet((set) => ({
          priority: set.ref('excluded.priority'),
          state: set.ref('excluded.state'),
          line: set.ref('excluded.line'),
          expires_at: set.ref('excluded.expires_at'),
          epoch: set.ref('excluded.epoch'),
        })),
      )
      .execute();
  }
}

function* chunks<T>(items: readonly T[]): Generator<T[]> {
  for (let start = 0; start < items.length; start += MAX_ROWS)
    yield items.slice(start, start + MAX_ROWS);
}
