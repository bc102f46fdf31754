import { prepareQuery, type RowOf } from '@writ/store';
import { sql } from 'kysely';
import type { auditChains, auditCheckpoints } from '../schema/audit.ts';
import type { SupervisorReader, SupervisorTransaction } from '../supervisor-store.ts';

/** The linked part of a tenant's chain. */
export type ChainRow = RowOf<typeof auditChains>;

/**
 * The end of a tenant's linked chain: the sequence and hash of its last record, and the numbers of signed records and
 * of checkpoints.
 */
export type ChainEnd = Omit<ChainRow, 'signed_at'>;

/** One signed checkpoint. */
export type CheckpointRow = RowOf<typeof auditCheckpoints>;

/** The conditions under which a chain with unsigned records is due for a checkpoint; one of them suffices. */
export interface CheckpointPolicy {
  /** The chain has at least this many unsigned records. */
  readonly records: number;
  /** The last checkpoint was signed at or before this time. */
  readonly before: Date;
  /** The recorded time of the last checkpoint is later than this time, which only a wrong clock can cause (BD-3). */
  readonly latest: Date;
}

/** The chains that are due for a checkpoint. */
export async function chainsToSign(
  db: SupervisorReader,
  policy: CheckpointPolicy,
): Promise<ChainRow[]> {
  return (await selectChainsToSign(db, policy)).rows;
}

const selectChainsToSign = prepareQuery((db: SupervisorReader, policy: CheckpointPolicy) =>
  db
    .selectFrom('audit_chains')
    .selectAll()
    .whereRef('sequence', '>', 'signed_count')
    .where(({ or, eb }) =>
      or([
        eb(sql<number>`sequence - signed_count`, '>=', policy.records),
        eb('signed_at', '<=', policy.before),
        eb('signed_at', '>', policy.latest),
      ]),
    ),
);

/**
 * Saves a checkpoint that covers `chain` (SV-8). Returns false, and saves nothing, when another checkpoint was saved
 * after `chain` was read, because each checkpoint names the previous one.
 */
export async function saveCheckpoint(
  trx: SupervisorTransaction,
  chain: ChainRow,
  signed: string,
  at: Date,
): Promise<boolean> {
  const { tenant, sequence: count } = chain;
  const checkpoints = chain.checkpoints + 1;
  const { numUpdatedRows } = await trx
    .updateTable('audit_chains')
    .set({ signed_count: count, checkpoints, signed_at: at })
    .where('tenant', '=', tenant)
    .where('signed_count', '=', chain.signed_count)
    .where('checkpoints', '=', chain.checkpoints)
    .executeTakeFirst();
  if (numUpdatedRows === 0n) return false;
  await trx
    .insertInto('audit_checkpoints')
    .values({ tenant, count, signed, signed_at: at })
    .execute();
  return true;
}

/** Returns the first `limit` checkpoints of a chain with a count above `after`, in order. */
export async function checkpointsAfter(
  db: SupervisorReader,
  tenant: string,
  after: number,
  limit: number,
): Promise<CheckpointRow[]> {
  return await db
    .selectFrom('audit_checkpoints')
    .selectAll()
    .where('tenant', '=', tenant)
    .where('count', '>', after)
    .orderBy('count')
    .limit(limit)
    .execute();
}

/** The checkpoints of a chain with a count above `after` and at most `upTo`, in order. */
export async function checkpointsOf(
  db: SupervisorReader,
  tenant: string,
  after: number,
  upTo: number,
): Promise<CheckpointRow[]> {
  return await db
    .selectFrom('audit_checkpoints')
    .selectAll()
    .where('tenant', '=', tenant)
    .where('count', '>', after)
    .where('count', '<=', upTo)
    .orderBy('count')
    .execute();
}
