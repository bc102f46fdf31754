import type { CallKey } from '../domain/writ.ts';
import type { GatewayReader, GatewayTransaction } from './gateway-store.ts';

/** A receipt that the supervisor has not acknowledged. */
export interface PendingReceipt {
  readonly receiptId: string;
  readonly token: string;
}

/** Records a receipt, to be delivered unless a worker carries it. */
export async function insertReceipt(
  trx: GatewayTransaction,
  key: CallKey,
  receipt: PendingReceipt & { readonly revision: number },
  at: Date,
): Promise<void> {
  await trx
    .insertInto('receipts')
    .values({
      receipt_id: receipt.receiptId,
      tenant: key.tenant,
      run_id: key.runId,
      agent_instance: key.agentInstance,
      call_id: key.callId,
      revision: receipt.revision,
      token: receipt.token,
      created_at: at,
      acknowledged_at: null,
    })
    .execute();
}

/** The oldest receipts that were not acknowledged and are not younger than `before`. */
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

/** Marks receipts that the supervisor has, or has refused for ever. */
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
