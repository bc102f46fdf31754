import { pickColumns, prepareQuery } from '@writ/store';
import type { Member } from '../domain/pool/pool.ts';
import { chunks } from './chunks.ts';
import { toMember } from './pool-rows.ts';
import type { MembersTable } from './schema.ts';
import type { PoolKey, SpawnReader, SpawnTransaction } from './spawn-store.ts';

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

/** Most calls change one agent or two; only those of whole pools are worth a statement of their own. */
const FEW = 4;

/** Writes agents as they stand now, new ones included. */
export async function upsertMembers(
  trx: SpawnTransaction,
  rows: readonly MembersTable[],
): Promise<void> {
  if (rows.length <= FEW) {
    for (const row of rows) await upsertMember(trx, row);
    return;
  }
  for (const some of chunks(rows)) await upserting(trx, some).execute();
}

const MEMBER_COLUMNS = [
  'tenant',
  'run_id',
  'instance',
  'name',
  'parent_instance',
  'parent_name',
  'depth',
  'priority',
  'state',
  'acquired',
  'line',
  'expires_at',
  'epoch',
  'acquired_at',
] as const;

const upsertMember = prepareQuery((db: SpawnReader, row: MembersTable) =>
  upserting(db, [pickColumns(row, MEMBER_COLUMNS)]),
);

function upserting(db: SpawnReader, rows: readonly MembersTable[]) {
  return db
    .insertInto('members')
    .values(rows)
    .onConflict((conflict) =>
      conflict.columns(['tenant', 'run_id', 'instance']).doUpdateSet((set) => ({
        priority: set.ref('excluded.priority'),
        state: set.ref('excluded.state'),
        line: set.ref('excluded.line'),
        expires_at: set.ref('excluded.expires_at'),
        epoch: set.ref('excluded.epoch'),
      })),
    );
}
