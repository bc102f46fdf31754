import type { CallKey, RunKey } from '@writ/kernel';
import { pickColumns, prepareQuery } from '@writ/store';
import type { Selectable } from 'kysely';
import type { ReceiptsTable } from '../schema/review-tables.ts';
import type { SupervisorReader, SupervisorTransaction } from '../supervisor-store.ts';

/** One receipt as it is recorded. */
export type ReceiptRow = Selectable<ReceiptsTable>;

/** Records a receipt; returns whether it was news. Of one call and revision the first stands (TG-8). */
export async function insertReceipt(
  trx: SupervisorTransaction,
  receipt: ReceiptRow,
): Promise<boolean> {
  const { numAffectedRows = 0n } = await insertNew(trx, receipt);
  return numAffectedRows > 0n;
}

const COLUMNS = [
  'tenant',
  'run_id',
  'instance',
  'call_id',
  'revision',
  'receipt_id',
  'status',
  'stop_reason',
  'result_sha256',
  'claims',
  'observation',
  'received_at',
] as const satisfies readonly (keyof ReceiptRow)[];

const insertNew = prepareQuery((db: SupervisorReader, receipt: ReceiptRow) =>
  db
    .insertInto('receipts')
    .values(pickColumns(receipt, COLUMNS))
    // Neither another of the same id nor another of the same revision.
    .onConflict((conflict) => conflict.doNothing()),
);

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
  const { numAffectedRows = 0n } = await saveObservation(trx, { ...key, content, contentSha256 });
  return numAffectedRows > 0n;
}

const saveObservation = prepareQuery(
  (
    db: SupervisorReader,
    shown: CallKey & { readonly content: string; readonly contentSha256: string },
  ) =>
    db
      .updateTable('receipts')
      .set({ observation: shown.content })
      .where('tenant', '=', shown.tenant)
      .where('run_id', '=', shown.runId)
      .where('instance', '=', shown.instance)
      .where('call_id', '=', shown.callId)
      .where('result_sha256', '=', shown.contentSha256)
      .where('observation', 'is', null),
);

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
