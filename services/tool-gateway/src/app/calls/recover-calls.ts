import type { GatewayContext } from '../../context.ts';
import { type CallState, transition } from '../../domain/call-state.ts';
import { type CallRow, findCall, inFlightCallRows, keyOf, releaseCall } from '../../store/calls.ts';
import type { GatewayTransaction } from '../../store/gateway-store.ts';
import { recordInterrupted } from '../receipts/record-outcome.ts';

/**
 * Settles the calls that dead processes left between intent and outcome, and the calls whose outcome this process could
 * not write (TG-5): a call of a tool that may run again is released, so that a repeated call can run the tool; any
 * other call gets a receipt with status UNKNOWN.
 */
export async function recoverCalls(
  context: Pick<
    GatewayContext,
    'store' | 'clock' | 'signer' | 'events' | 'telemetry' | 'inFlightCalls'
  >,
): Promise<void> {
  const { store, telemetry, inFlightCalls } = context;
  const calls = await inFlightCallRows(store.db);
  if (calls.length === 0) return;
  const deadReplicas = await store.replicas.findDead(calls.map(({ owner }) => owner));
  for (const call of calls) {
    const isLost = call.owner === store.replicas.id && !inFlightCalls.has(keyOf(call));
    if (!isLost && !deadReplicas.has(call.owner)) continue;
    const options = { run: keyOf(call), background: true };
    const state = await store.transaction((trx) => recoverCall(context, trx, call), options);
    if (state === undefined) continue;
    telemetry.log.warn(
      {
        tenant: call.tenant,
        run_id: call.run_id,
        agent: call.agent_instance,
        call_id: call.call_id,
        tool: call.tool,
        state,
      },
      'interrupted call recovered',
    );
  }
}

/**
 * Settles one call and returns its state; returns undefined and writes nothing if the call has ended or was repeated
 * since its row was read.
 */
async function recoverCall(
  context: Pick<GatewayContext, 'clock' | 'signer' | 'events'>,
  trx: GatewayTransaction,
  call: CallRow,
): Promise<CallState | undefined> {
  const current = await findCall(trx, keyOf(call));
  const { owner, attempts } = call;
  if (current?.state !== 'intent' || current.owner !== owner || current.attempts !== attempts) {
    return undefined;
  }
  const sideEffect = call.side_effect ?? 'destructive';
  const { next, effect } = transition('running', { kind: 'crash' }, sideEffect);
  if (effect === 'record' && next === 'unknown') {
    await recordInterrupted(context, trx, call, next);
  } else {
    await releaseCall(trx, call);
  }
  return next;
}
