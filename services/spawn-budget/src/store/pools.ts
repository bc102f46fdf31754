import type { RunKey } from '@writ/kernel';
import { pickColumns, prepareQuery, prepareWrite, type StoreDialect } from '@writ/store';
import { sql } from 'kysely';
import type { Member } from '../domain/pool/pool.ts';
import { chunks, fromMember, upsertMembers } from './members.ts';
import type { PoolCache } from './pool-cache.ts';
import { type PoolRow, pools, type SpawnReader, type SpawnTransaction } from './schema.ts';
import { fromPool, type StoredPool, toPool } from './stored-pool.ts';

/** Options of {@link loadPools}. */
export interface LoadOptions {
  readonly dialect: StoreDialect;
  readonly cache: PoolCache;
}

/**
 * Loads pools of one tenant with their live members and locks them in key order until the transaction
 * ends. Pools that do not exist are omitted.
 */
export async function loadPools(
  trx: SpawnTransaction,
  tenant: string,
  runIds: readonly string[],
  { dialect, cache }: LoadOptions,
): Promise<StoredPool[]> {
  const found: StoredPool[] = [];
  const unknown: string[] = [];
  for (const runId of runIds) {
    const known = cache.current(trx, { tenant, runId });
    if (known === undefined) unknown.push(runId);
    else found.push(known);
  }
  for (const some of chunks(unknown)) {
    const missed: string[] = [];
    for (const { run_id: runId, stamp } of await lockPools(trx, tenant, some, dialect)) {
      const cached = cache.get({ tenant, runId }, stamp);
      if (cached === undefined) missed.push(runId);
      else found.push(cached);
    }
    if (missed.length > 0) found.push(...(await readPools(trx, tenant, missed)));
  }
  return found;
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
  // SQLite has one writer at a time; on PostgreSQL replicas lock the rows.
  return await (dialect === 'postgres' ? query.forUpdate() : query).execute();
}

const selectStamp = prepareQuery((db: SpawnReader, key: RunKey) =>
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
  const memberRows = await trx
    .selectFrom('members')
    .selectAll()
    .where('tenant', '=', tenant)
    .where('run_id', 'in', runIds)
    // A literal, so that the partial index applies: long runs have more released agents than live ones.
    .where('state', '!=', sql.lit('released'))
    .orderBy('acquired')
    .execute();
  const byRun = Map.groupBy(memberRows, ({ run_id }) => run_id);
  return rows.map((row) => toPool(row, byRun.get(row.run_id) ?? []));
}

/** Inserts a new pool with its members. */
export async function insertPool(trx: SpawnTransaction, stored: StoredPool): Promise<void> {
  await insertRow(trx, fromPool(stored));
  await upsertMembers(
    trx,
    Array.from(stored.pool.members.values(), (member) => fromMember(stored, member)),
  );
}

const insertRow = prepareWrite((db: SpawnReader, row: PoolRow) =>
  db.insertInto('pools').values(pickColumns(row, pools.columns)),
);

/** Writes the differences between `before` and `after` of each pool. */
export async function savePools(
  trx: SpawnTransaction,
  changes: readonly { readonly before: StoredPool; readonly after: StoredPool }[],
  cache: PoolCache,
): Promise<void> {
  const rows: ReturnType<typeof fromMember>[] = [];
  const updates: Promise<unknown>[] = [];
  for (const { before, after } of changes) {
    const changed: Member[] = [];
    for (const [instance, member] of after.pool.members)
      if (before.pool.members.get(instance) !== member) changed.push(member);
    if (changed.length === 0 && !isChanged(before, after)) continue;
    const stored = { ...after, stamp: cache.newStamp() };
    updates.push(updatePool(trx, fromPool(stored)));
    cache.put(trx, stored);
    rows.push(...changed.map((member) => fromMember(after, member)));
  }
  await Promise.all([...updates, upsertMembers(trx, rows)]);
}

function isChanged({ pool: a }: StoredPool, { pool: b }: StoredPool): boolean {
  return a.sequence !== b.sequence || a.closed !== b.closed || a.totalRefusals !== b.totalRefusals;
}

const updatePool = prepareWrite((db: SpawnReader, row: PoolRow) =>
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

/** Returns the runs of a page of open pools, by tenant and run. */
export async function readOpenPools(
  db: SpawnReader,
  page: { readonly after: RunKey | undefined; readonly limit: number; readonly openedBefore: Date },
): Promise<RunKey[]> {
  const { tenant, runId } = page.after ?? { tenant: '', runId: '' };
  const rows = await db
    .selectFrom('pools')
    .select(['tenant', 'run_id'])
    .where('closed_at', 'is', null)
    .where('opened_at', '<=', page.openedBefore)
    .where((pool) =>
      pool.or([
        pool('tenant', '>', tenant),
        pool.and([pool('tenant', '=', tenant), pool('run_id', '>', runId)]),
      ]),
    )
    .orderBy('tenant')
    .orderBy('run_id')
    .limit(page.limit)
    .execute();
  return rows.map((row) => ({ tenant: row.tenant, runId: row.run_id }));
}

/** The runs of at most `limit` pools that were closed before `before`. A closed pool stays closed. */
export async function poolsClosedBefore(
  db: SpawnReader,
  before: Date,
  limit: number,
): Promise<RunKey[]> {
  const rows = await db
    .selectFrom('pools')
    .select(['tenant', 'run_id'])
    .where('closed_at', '<', before)
    .limit(limit)
    .execute();
  return rows.map((row) => ({ tenant: row.tenant, runId: row.run_id }));
}

/** Deletes the pools of runs. */
export async function deletePools(trx: SpawnTransaction, runs: readonly RunKey[]): Promise<void> {
  for (const { tenant, runId } of runs) {
    for (const name of ['requests', 'members', 'pools'] as const)
      await trx.deleteFrom(name).where('tenant', '=', tenant).where('run_id', '=', runId).execute();
  }
}
