import type { CallKey } from '@writ/kernel';
import type { GatewayContext } from '../../context.ts';
import { transition } from '../../domain/call-state.ts';
import { blankCall, callStateOf, findCall, insertCall } from '../../store/calls.ts';
import type { GatewayTransaction } from '../../store/gateway-store.ts';
import { insertReceipt } from '../../store/receipts.ts';
import { deadOwner, isOwnedByPeer } from '../calls/call-owner.ts';
import { recordInterrupted, signReceipt } from './record-outcome.ts';

/** State of a writ after it was voided, with its receipt unless the call is in flight. */
export type VoidedWrit =
  | { readonly state: 'burnt' | 'receipt'; readonly receipt: string }
  | { readonly state: 'in_flight' };

/** Recorded agent name and tool of a burnt call, because a VoidWrit request contains neither. */
const UNKNOWN_NAME = '-';

/**
 * Settles a writ (TG-8): returns the receipt of its call, or `in_flight`; burns a call that was never made, and
 * records the outcome of an interrupted call.
 */
export async function voidWrit(context: GatewayContext, key: CallKey): Promise<VoidedWrit> {
  const { store, wakeRelay, telemetry } = context;
  const deadReplicas = await deadOwner(store, key);
  const voided = await store.transaction((trx) => settle(context, trx, key, deadReplicas), {
    run: key,
  });
  telemetry.log.info(
    {
      tenant: key.tenant,
      run_id: key.runId,
      agent: key.instance,
      call_id: key.callId,
      burnt: voided.state === 'burnt',
      in_flight: voided.state === 'in_flight',
    },
    'writ voided',
  );
  wakeRelay();
  return voided;
}

async function settle(
  context: GatewayContext,
  trx: GatewayTransaction,
  key: CallKey,
  deadReplicas: ReadonlySet<string>,
): Promise<VoidedWrit> {
  const { store, inFlightCalls } = context;
  const known = await findCall(trx, key);
  if (known === undefined) return { state: 'burnt', receipt: await burn(context, trx, key) };
  const isLive = inFlightCalls.has(key) || isOwnedByPeer(known, store.replicas, deadReplicas);
  const { next, effect } = transition(
    callStateOf(known, isLive),
    { kind: 'void' },
    known.side_effect ?? 'destructive',
  );
  if (effect === 'join') return { state: 'in_flight' };
  if (effect === 'record' && (next === 'error' || next === 'unknown')) {
    const { token } = await recordInterrupted(context, trx, known, next);
    return { state: 'receipt', receipt: token };
  }
  const state = known.state === 'burnt' ? 'burnt' : 'receipt';
  return { state, receipt: known.receipt ?? '' };
}

/** Records a call that was never made as burnt, so that it is never executed. @returns its receipt */
async function burn(
  { clock, tools, signer }: GatewayContext,
  trx: GatewayTransaction,
  key: CallKey,
): Promise<string> {
  const at = clock.now();
  const burnt = await signReceipt(signer, {
    ...blankCall(key, at),
    agent_name: UNKNOWN_NAME,
    tool: UNKNOWN_NAME,
    registry_version: tools.now.registry.version,
    state: 'burnt',
    ended_at: at,
    stop_reason: 'cancelled',
    message: 'The writ was voided before the call was made.',
    revision: 1,
  });
  await insertCall(trx, burnt.call);
  await insertReceipt(trx, key, { ...burnt, revision: 1 }, at);
  return burnt.token;
}
