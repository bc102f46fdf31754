import type { Selectable } from 'kysely';
import type { RunKey } from '../change/changes.ts';
import type { ReceiptsTable } from '../schema/review-tables.ts';
import type { SupervisorReader, SupervisorTransaction } from '../supervisor-store.ts';
import type { CallKey } from './decisions.ts';

/** One receipt as it is recorded. */
export type ReceiptRow = Selectable<ReceiptsTable>;

/** Records a receipt; returns whether it was news. Of one call and revision the first stands (TG-8). */
export async function insertReceipt(
  trx: SupervisorTransaction,
  receipt: ReceiptRow,
): Promise<boolean> {
  const known = await trx
    .selectFrom('receipts')
    .select('receipt_id')
    .where(({ and, or, eb }) =>
      or([
        eb('receipt_id', '=', receipt.receipt_id),
        and([
          eb('tenant', '=', receipt.tenant),
          eb('run_id', '=', receipt.run_id),
          eb('instance', '=', receipt.instance),
          eb('call_id', '=', receipt.call_id),
          eb('revision', '=', receipt.revision),
        ]),
      ]),
    )
    .limit(1)
    .executeTakeFirst();
  if (known !== undefined) return false;
  await trx.insertInto('receipts').values(receipt).execute();
  return true;
}

/** The receipt of a call that counts: that of the highest revision; undefined when there is none. */
export async function findReceipt(
  db: SupervisorReader,
  key: CallKey,
): Promise<ReceiptRow | undefined> {
  return await db
    .selectFrom('receipts')
    .selectAll()
    .where('tenant', '=', key.tenant)
    .where('run_id', '=', key.runId)
    .where('instance', '=', key.instance)
    .where('call_id', '=', key.callId)
    .orderBy('revision', 'desc')
    .limit(1)
    .executeTakeFirst();
}

/**
 * Keeps what a call gave back, where a receipt vouches for exactly these bytes: once, and nothing
 * else (SV-7). Returns whether a receipt did.
 */
export async function keepObservation(
  trx: SupervisorTransaction,
  key: CallKey,
  content: string,
  contentSha256: string,
): Promise<boolean> {
  const { numUpdatedRows } = await trx
    .updateTable('receipts')
    .set({ observation: content })
    .where('tenant', '=', key.tenant)
    .where('run_id', '=', key.runId)
    .where('instance', '=', key.instance)
    .where('call_id', '=', key.callId)
    .where('result_sha256', '=', contentSha256)
    .where('observation', 'is', null)
    .executeTakeFirst();
  return numUpdatedRows > 0n;
}

/** Every receipt of a run; of a call, the highest revision counts (SV-7). */
export async function receiptsOf(
  db: SupervisorReader,
  { tenant, runId }: RunKey,
): Promise<ReceiptRow[]> {
  return await db
    .selectFrom('receipts')
    .selectAll()
    .where('tenant', '=', tenant)
    .where('run_id', '=', runId)
    .orderBy('received_at')
    .execute();
}
