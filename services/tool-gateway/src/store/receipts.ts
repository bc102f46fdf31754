import type { CallKey } from '@writ/kernel';
import { prepareWrite } from '@writ/store';
import type { GatewayReader, GatewayTransaction } from './gateway-store.ts';

/** A receipt that the supervisor has not acknowledged. */
export interface PendingReceipt {
  readonly receiptId: string;
  readonly token: string;
}

/** Records a receipt, which is delivered until it is acknowledged. */
export async function insertReceipt(
  trx: GatewayTransaction,
  key: CallKey,
  receipt: PendingReceipt & { readonly revision: number },
  at: Date,
): Promise<void> {
  const { receiptId, token, revision } = receipt;
  await insertRow(trx, { ...key, receiptId, token, revision, at });
}

type NewReceipt = CallKey & PendingReceipt & { readonly revision: number; readonly at: Date };

const insertRow = prepareWrite((db: GatewayReader, row: NewReceipt) =>
  db.insertInto('receipts').values({
    receipt_id: row.receiptId,
    tenant: row.tenant,
    run_id: row.runId,
    agent_instance: row.instance,
    call_id: row.callId,
    revision: row.revision,
    token: row.token,
    created_at: row.at,
    acknowledged_at: null,
  }),
);

/** The oldest unacknowledged receipts that were created at or before `before`. */
export async function pendingReceipts(
  db: GatewayReader,
  before: Date,
  limit: number,
): Promise<PendingReceipt[]> {
  const rows = await db
    .selectFrom('receipts')
    .select(['receipt_id', 'token'])
    .where('acknowledged_at', 'is', null)
    .where('created_at', '<=', before)
    .orderBy('position')
    .limit(limit)
    .execute();
  return rows.map((row) => ({ receiptId: row.receipt_id, token: row.token }));
}

/** Marks receipts that the supervisor has recorded or permanently rejected. */
export async function acknowledgeReceipts(
  trx: GatewayTransaction,
  receiptIds: readonly string[],
  at: Date,
): Promise<void> {
  await trx
    .updateTable('receipts')
    .set({ acknowledged_at: at })
    .where('receipt_id', 'in', receiptIds)
    .execute();
}
