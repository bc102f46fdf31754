import type { StoreDialect } from '@writ/store';
import { sql } from 'kysely';
import type { Member } from '../domain/pool/pool.ts';
import type { PoolCache } from './pool-cache.ts';
import { fromMember, fromPool, type StoredPool, toMember, toPool } from './pool-rows.ts';
import type { PoolKey, SpawnReader, SpawnTransaction } from './spawn-store.ts';

/** Rows that one statement carries at most: databases bound the parameters of a statement. */
const MAX_ROWS = 500;

/** How pools are loaded. */
export interface LoadOptions {
  readonly dialect: StoreDialect;
  readonly cache: PoolCache;
}

/**
 * Loads pools of one tenant with their live members, in the order of keys, and locks them until the
 * transaction ends. What does not exist is not among them.
 */
export async function loadPools(
  trx: SpawnTransaction,
  tenant: string,
  runIds: readonly string[],
  { dialect, cache }: LoadOptions,
): Promise<StoredPool[]> {
  const pools: StoredPool[] = [];
  for (const some of chunks(runIds)) {
    const query = trx
      .selectFrom('pools')
      .select(['run_id', 'stamp'])
      .where('tenant', '=', tenant)
      .where('run_id', 'in', some)
      .orderBy('run_id');
    // SQLite lets one transaction write at a time; elsewhere replicas take turns at the row.
    const locked = dialect === 'postgres' ? query.forUpdate() : query;
    const missed: string[] = [];
    for (const { run_id: runId, stamp } of await locked.execute()) {
      const cached = cache.get({ tenant, runId }, stamp);
      if (cached === undefined) missed.push(runId);
      else pools.push(cached);
    }
    if (missed.length > 0) pools.push(...(await readPools(trx, tenant, missed)));
  }
  return pools;
}

async function readPools(
  trx: SpawnTransaction,
  tenant: string,
  runIds: readonly string[],
): Promise<StoredPool[]> {
  const rows = await trx
    .selectFrom('pools')
    .selectAll()
    .where('tenant', '=', tenant)
    .where('run_id', 'in', runIds)
    .execute();
  const members = await trx
    .selectFrom('members')
    .selectAll()
    .where('tenant', '=', tenant)
    .where('run_id', 'in', runIds)
    // Literally as in the index of the living: long runs have more dead agents than live ones.
    .where('state', '!=', sql.lit('released'))
    .orderBy('acquired')
    .execute();
  const byRun = Map.groupBy(members, ({ run_id }) => run_id);
  return rows.map((row) => toPool(row, byRun.get(row.run_id) ?? []));
}

/** Those among `instances` that were agents of the run and are released. */
export async function releasedMembers(
  trx: SpawnTransaction,
  { tenant, runId }: PoolKey,
  instances: readonly string[],
): Promise<Member[]> {
  const rows = await trx
    .selectFrom('members')
    .selectAll()
    .where('tenant', '=', tenant)
    .where('run_id', '=', runId)
    .where('instance', 'in', instances)
    .where('state', '=', 'released')
    .execute();
  return rows.map(toMember);
}

/** Records a new pool with its members. */
export async function insertPool(trx: SpawnTransaction, stored: StoredPool): Promise<void> {
  await trx.insertInto('pools').values(fromPool(stored)).execute();
  await upsertMembers(
    trx,
    Array.from(stored.pool.members.values(), (member) => fromMember(stored, member)),
  );
}

/** Writes what differs between two states of pools. */
export async function savePools(
  trx: SpawnTransaction,
  changes: readonly { readonly before: StoredPool; readonly after: StoredPool }[],
  cache: PoolCache,
): Promise<void> {
  const rows: ReturnType<typeof fromMember>[] = [];
  for (const { before, after } of changes) {
    const changed = [...after.pool.members.values()].filter(
      (member) => before.pool.members.get(member.agent.instance) !== member,
    );
    if (changed.length === 0 && !differs(before, after)) continue;
    const stored = { ...after, stamp: cache.newStamp() };
    await updatePool(trx, stored);
    cache.put(stored);
    rows.push(...changed.map((member) => fromMember(after, member)));
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
  return a.sequence !== b.sequence || a.closed !== b.closed || a.totalRefusals !== b.totalRefusals;
}

async function updatePool(trx: SpawnTransaction, stored: StoredPool): Promise<void> {
  const row = fromPool(stored);
  await trx
    .updateTable('pools')
    .set({
      stamp: row.stamp,
      sequence: row.sequence,
      total_spawns: row.total_spawns,
      total_pauses: row.total_pauses,
      total_refusals: row.total_refusals,
      closed_at: row.closed_at,
    })
    .where('tenant', '=', stored.tenant)
    .where('run_id', '=', stored.runId)
    .execute();
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
