import { readReceipt } from '@writ/identity';
import type { RunKey } from '@writ/kernel';
import { type SupervisorContext, transact } from '../../context.ts';
import { writsWithoutReceipt } from '../../store/review/decisions-with-receipts.ts';
import { receiptFrom } from '../../wire/receipt.ts';
import { recordReceipt } from './record-receipt.ts';

/**
 * Requests the outcome of each writ of an ended run that has no receipt: the gateway returns the receipt of the call or
 * voids the writ, unless the call is in flight (TG-8). Returns how many calls still have no receipt.
 */
export async function settleWrits(context: SupervisorContext, run: RunKey): Promise<number> {
  const { store, peers, verifier, telemetry } = context;
  let unsettled = 0;
  for (const call of await writsWithoutReceipt(store.db, run)) {
    const { state, receipt } = await peers.toolGateway.voidWrit(call, 'The run has ended.');
    if (state === 'in_flight') {
      unsettled += 1;
      continue;
    }
    const verified = receiptFrom(await readReceipt(verifier, receipt));
    const outcome = await transact(context, (tx) => recordReceipt(tx, verified), {
      run: verified,
      background: true,
    });
    if (outcome !== 'mismatch') continue;
    unsettled += 1;
    telemetry.log.error(
      { tenant: run.tenant, run_id: run.runId, call_id: call.callId, receipt_id: verified.id },
      'receipt of a voided writ belongs to another call',
    );
  }
  return unsettled;
}
