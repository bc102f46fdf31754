import { readReceipt } from '@writ/identity';
import type { SupervisorContext } from '../../context.ts';
import type { RunKey } from '../../store/change/changes.ts';
import { writsWithoutReceipt } from '../../store/review/decisions.ts';
import { receiptFrom } from '../../wire/receipt.ts';
import { recordReceipt } from './record-receipt.ts';

/**
 * Ends the doubt about a run's writs that have no receipt: the gateway gives the receipt or burns the
 * call for ever (TG-8). Returns how many calls nobody can tell of yet.
 */
export async function settleWrits(context: SupervisorContext, run: RunKey): Promise<number> {
  const { store, peers, verifier, clock, telemetry } = context;
  let unsettled = 0;
  for (const call of await writsWithoutReceipt(store.db, run)) {
    const { state, receipt } = await peers.toolGateway.voidWrit(call, 'The run has ended.');
    if (state === 'in_flight') {
      unsettled += 1;
      continue;
    }
    const verified = receiptFrom(await readReceipt(verifier, receipt));
    const fate = await store.transaction(
      (trx) => recordReceipt(trx, context, verified, clock.now()),
      { background: true },
    );
    if (fate !== 'unfit') continue;
    unsettled += 1;
    telemetry.log.error(
      { tenant: run.tenant, run_id: run.runId, call_id: call.callId, receipt_id: verified.id },
      'The receipt for a voided writ is about another call.',
    );
  }
  return unsettled;
}
