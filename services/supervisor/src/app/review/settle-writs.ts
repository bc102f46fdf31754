import { readReceipt } from '@writ/identity';
import type { RunKey } from '@writ/kernel';
import { type SupervisorContext, transact } from '../../context.ts';
import { writsWithoutReceipt } from '../../store/review/decisions-with-receipts.ts';
import { receiptFrom } from '../../wire/receipt.ts';
import { recordReceipt } from './record-receipt.ts';
import { auditMismatch } from './report-receipts.ts';

/**
 * Requests the outcome of each writ of an ended run that has no receipt: the gateway returns the receipt of the call or
 * voids the writ, unless the call is in flight (TG-8). Returns how many calls are in flight. A receipt that matches no
 * approved call is audited, and its call is not counted as in flight, because the gateway returns no other receipt for
 * that call.
 */
export async function settleWrits(context: SupervisorContext, run: RunKey): Promise<number> {
  const { store, peers, verifier, telemetry } = context;
  let inFlight = 0;
  for (const call of await writsWithoutReceipt(store.db, run)) {
    const { state, receipt } = await peers.toolGateway.voidWrit(call, 'The run has ended.');
    if (state === 'in_flight') {
      inFlight += 1;
      continue;
    }
    const verified = receiptFrom(await readReceipt(verifier, receipt));
    const isMismatch = await transact(
      context,
      async (tx) => {
        if ((await recordReceipt(tx, verified)) !== 'mismatch') return false;
        await auditMismatch(tx, verified);
        return true;
      },
      { run: verified, background: true },
    );
    if (!isMismatch) continue;
    telemetry.log.error(
      { tenant: run.tenant, run_id: run.runId, call_id: call.callId, receipt_id: verified.id },
      'receipt matches no approved call',
    );
  }
  return inFlight;
}
