import type { CallKey, RunKey } from '@writ/kernel';
import { pickColumns, prepareQuery, type RowOf } from '@writ/store';
import { receipts } from '../schema/review.ts';
import type { SupervisorReader, SupervisorTransaction } from '../supervisor-store.ts';

/** The row of a receipt. */
export type ReceiptRow = RowOf<typeof receipts>;

/** Inserts a receipt; returns false when it exists. The first receipt of a call and revision is kept (TG-8). */
export async function insertReceipt(
  trx: SupervisorTransaction,
  receipt: ReceiptRow,
): Promise<boolean> {
  const { numAffectedRows = 0n } = await insertNew(trx, receipt);
  return numAffectedRows > 0n;
}

const insertNew = prepareQuery((db: SupervisorReader, receipt: ReceiptRow) =>
  db
    .insertInto('receipts')
    .values(pickColumns(receipt, receipts.columns))
    // Ignores a conflict on either key: the id, or call and revision.
    .onConflict((conflict) => conflict.doNothing()),
);

/** The receipt of a call with the highest revision; undefined if there is none. */
export async function findReceipt(
  db: SupervisorReader,
  key: CallKey,
): Promise<ReceiptRow | undefined> {
  return (await selectReceipt(db, key)).rows[0];
}

const selectReceipt = prepareQuery((db: SupervisorReader, key: CallKey) =>
  db
    .selectFrom('receipts')
    .selectAll()
    .where('tenant', '=', key.tenant)
    .where('run_id', '=', key.runId)
    .where('instance', '=', key.instance)
    .where('call_id', '=', key.callId)
    .orderBy('revision', 'desc')
    .limit(1),
);

/**
 * Stores the result of a call if a receipt contains the SHA-256 digest of `content` and has no stored result yet
 * (SV-7). Returns whether the result was stored.
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

/** All receipts of a run; the highest revision of a call counts (SV-7). */
export async function receiptsOf(db: SupervisorReader, run: RunKey): Promise<ReceiptRow[]> {
  return (await selectReceipts(db, run)).rows;
}

const selectReceipts = prepareQuery((db: SupervisorReader, { tenant, runId }: RunKey) =>
  db
    .selectFrom('receipts')
    .selectAll()
    .where('tenant', '=', tenant)
    .where('run_id', '=', runId)
    .orderBy('received_at'),
);
