import { pickColumns, prepareQuery, type StoreDialect } from '@writ/store';
import { sql } from 'kysely';
import type { Member } from '../domain/pool/pool.ts';
import { chunks } from './chunks.ts';
import { upsertMembers } from './members.ts';
import type { PoolCache } from './pool-cache.ts';
import { fromMember, fromPool, type StoredPool, toPool } from './pool-rows.ts';
import type { PoolsTable } from './schema.ts';
import type { PoolKey, SpawnReader, SpawnTransaction } from './spawn-store.ts';

/** How pools are loaded. */
export interface LoadOptions {
  readonly dialect: StoreDialect;
  readonly cache: PoolCache;
}

/**
 * Loads pools of one tenant with their live members, and locks them, in the order of keys, until the
 * transaction ends. What does not exist is not among them.
 */
export async function loadPools(
  trx: SpawnTransaction,
  tenant: string,
  runIds: readonly string[],
  { dialect, cache }: LoadOptions,
): Promise<StoredPool[]> {
  const pools: StoredPool[] = [];
  const unknown: string[] = [];
  for (const runId of runIds) {
    const known = cache.recall(trx, { tenant, runId });
    if (known === undefined) unknown.push(runId);
    else pools.push(known);
  }
  for (const some of chunks(unknown)) {
    const missed: string[] = [];
    for (const { run_id: runId, stamp } of await lockPools(trx, tenant, some, dialect)) {
      const cached = cache.get({ tenant, runId }, stamp);
      if (cached === undefined) missed.push(runId);
      else pools.push(cached);
    }
    if (missed.length > 0) pools.push(...(await readPools(trx, tenant, missed)));
  }
  return pools;
}

async function lockPools(
  trx: SpawnTransaction,
  tenant: string,
  runIds: readonly string[],
  dialect: StoreDialect,
): Promise<{ readonly run_id: string; readonly stamp: string }[]> {
  const [runId] = runIds;
  if (dialect === 'sqlite' && runIds.length === 1 && runId !== undefined) {
    return (await selectStamp(trx, { tenant, runId })).rows;
  }
  const query = trx
    .selectFrom('pools')
    .select(['run_id', 'stamp'])
    .where('tenant', '=', tenant)
    .where('run_id', 'in', runIds)
    .orderBy('run_id');
  // SQLite lets one transaction write at a time; elsewhere replicas take turns at the row.
  return await (dialect === 'postgres' ? query.forUpdate() : query).execute();
}

const selectStamp = prepareQuery((db: SpawnReader, key: PoolKey) =>
  db
    .selectFrom('pools')
    .select(['run_id', 'stamp'])
    .where('tenant', '=', key.tenant)
    .where('run_id', '=', key.runId),
);

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
    const changed: Member[] = [];
    for (const [instance, member] of after.pool.members)
      if (before.pool.members.get(instance) !== member) changed.push(member);
    if (changed.length === 0 && !differs(before, after)) continue;
    const stored = { ...after, stamp: cache.newStamp() };
    await updatePool(trx, fromPool(stored));
    cache.put(trx, stored);
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

const updatePool = prepareQuery((db: SpawnReader, row: PoolsTable) =>
  db
    .updateTable('pools')
    .set(
      pickColumns(row, [
        'stamp',
        'sequence',
        'total_spawns',
        'total_pauses',
        'total_refusals',
        'closed_at',
      ]),
    )
    .where('tenant', '=', row.tenant)
    .where('run_id', '=', row.run_id),
);
