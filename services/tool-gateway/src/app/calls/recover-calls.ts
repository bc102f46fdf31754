import type { GatewayContext } from '../../context.ts';
import { transition } from '../../domain/call-state.ts';
import { inFlightCallRows, keyOf, releaseCall } from '../../store/calls.ts';
import { signOutcome, uncertainOutcome, writeReceipted } from '../receipts/record-outcome.ts';

/**
 * Settles what processes that have ended left between intent and outcome, and what this one could not
 * write down (TG-5): a tool that may run again waits for the repeat of its call; any other leaves an
 * UNKNOWN receipt.
 */
export async function recoverCalls(
  context: Pick<
    GatewayContext,
    'store' | 'clock' | 'signer' | 'events' | 'telemetry' | 'inFlightCalls'
  >,
): Promise<void> {
  const { store, clock, telemetry, inFlightCalls } = context;
  const left = await inFlightCallRows(store.db);
  if (left.length === 0) return;
  const deadReplicas = await store.replicas.findDead(left.map(({ owner }) => owner));
  for (const call of left) {
    const isLost = call.owner === store.replicas.id && !inFlightCalls.has(keyOf(call));
    if (!isLost && !deadReplicas.has(call.owner)) continue;
    const sideEffect = call.side_effect ?? 'destructive';
    const { next, effect } = transition('running', { kind: 'crash' }, sideEffect);
    telemetry.log.warn(
      {
        tenant: call.tenant,
        run_id: call.run_id,
        agent: call.agent_instance,
        call_id: call.call_id,
        tool: call.tool,
        state: next,
      },
      'A call was interrupted by the end of a former process.',
    );
    if (effect !== 'record' || next !== 'unknown') {
      await store.transaction((trx) => releaseCall(trx, call), { background: true });
      continue;
    }
    const at = clock.now();
    const outcome = uncertainOutcome(call, next, 'was interrupted');
    const receipted = await signOutcome(context, call, outcome, at);
    await store.transaction((trx) => writeReceipted(context, trx, 'intent', receipted, at), {
      background: true,
    });
  }
}
