import { prepareQuery } from '@writ/store';
import { type Selectable, sql } from 'kysely';
import type { AuditChainsTable, AuditCheckpointsTable } from '../schema/audit-tables.ts';
import type { SupervisorReader, SupervisorTransaction } from '../supervisor-store.ts';

/** A tenant's chain as far as it is linked. */
export type ChainRow = Selectable<AuditChainsTable>;

/** What is signed of a chain. */
export type ChainEnd = Omit<ChainRow, 'signed_at'>;

/** One signed checkpoint. */
export type CheckpointRow = Selectable<AuditCheckpointsTable>;

/** When a chain with records that no checkpoint covers is to be signed. */
export interface CheckpointRhythm {
  /** There are so many of them. */
  readonly records: number;
  /** Or the last checkpoint is as old as this. */
  readonly before: Date;
}

/** The chains that are to be signed now. */
export async function chainsToSign(
  db: SupervisorReader,
  rhythm: CheckpointRhythm,
): Promise<ChainRow[]> {
  return (await selectChainsToSign(db, rhythm)).rows;
}

const selectChainsToSign = prepareQuery((db: SupervisorReader, rhythm: CheckpointRhythm) =>
  db
    .selectFrom('audit_chains')
    .selectAll()
    .whereRef('sequence', '>', 'signed_count')
    .where(({ or, eb }) =>
      or([
        eb(sql<number>`sequence - signed_count`, '>=', rhythm.records),
        eb('signed_at', '<=', rhythm.before),
      ]),
    ),
);

/**
 * Keeps a checkpoint over the chain as it stood in `chain` (SV-8). Returns false, and keeps nothing,
 * when another one was kept meanwhile: each names the one before.
 */
export async function saveCheckpoint(
  trx: SupervisorTransaction,
  chain: ChainRow,
  signed: string,
  at: Date,
): Promise<boolean> {
  const { tenant, sequence: count } = chain;
  const { numUpdatedRows } = await trx
    .updateTable('audit_chains')
    .set({ signed_count: count, signed_at: at })
    .where('tenant', '=', tenant)
    .where('signed_count', '=', chain.signed_count)
    .executeTakeFirst();
  if (numUpdatedRows === 0n) return false;
  await trx
    .insertInto('audit_checkpoints')
    .values({ tenant, count, signed, signed_at: at })
    .execute();
  return true;
}

/** The checkpoints of a chain that cover more than `after` records and at most `upTo`, in order. */
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
