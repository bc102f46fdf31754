import type { ToolGatewayService } from '@writ/contracts/writ/tool/v1/tool_gateway_service_pb';
import { VoidState } from '@writ/contracts/writ/tool/v1/tool_gateway_service_pb';
import type { Handlers } from '@writ/rpc';
import { deadOwner, isOwnedByPeer } from '../app/calls/call-owner.ts';
import { toCallKey } from '../app/calls/presented-call.ts';
import { signOutcome, uncertainOutcome, writeReceipted } from '../app/receipts/record-outcome.ts';
import { signReceipt } from '../app/receipts/sign-receipt.ts';
import type { GatewayContext } from '../context.ts';
import { transition } from '../domain/call-state.ts';
import type { CallKey } from '../domain/writ.ts';
import { type CallRow, findCall, insertCall } from '../store/calls.ts';
import { insertReceipt } from '../store/receipts.ts';
import { callStateOf } from '../wire/call-result.ts';

/** Stands for a name that nobody told: a writ that was never shown is burnt by its call alone. */
const UNTOLD = '-';

/**
 * Settles what became of a writ (TG-8): the call's receipt; in flight; or, when the call was never
 * made, burnt for ever. A call that was begun and is not under way any more gets the outcome of one
 * whose end nobody saw.
 */
export function voidWrit(context: GatewayContext): Handlers<typeof ToolGatewayService>['voidWrit'] {
  const { store, clock, tools, signer, inFlightCalls, wakeRelay, telemetry } = context;
  return async (request) => {
    const key = toCallKey(request.call);
    const deadReplicas = await deadOwner(store, key);
    const answer = await store.transaction(async (trx) => {
      const known = await findCall(trx, key);
      const isLive = inFlightCalls.has(key) || isOwnedByPeer(known, store.replicas, deadReplicas);
      const state = known === undefined ? 'none' : callStateOf(known, isLive);
      const sideEffect = known?.side_effect ?? 'destructive';
      const { next, effect } = transition(state, { kind: 'void' }, sideEffect);
      const at = clock.now();
      if (known === undefined) {
        const burnt = await signReceipt(signer, burntRow(key, tools.now.registry.version, at));
        await insertCall(trx, burnt.call);
        await insertReceipt(trx, key, { ...burnt, revision: 1 }, at);
        return { state: VoidState.BURNT, receipt: burnt.token };
      }
      if (effect === 'join') return { state: VoidState.IN_FLIGHT };
      if (effect === 'record' && (next === 'error' || next === 'unknown')) {
        const outcome = uncertainOutcome(known, next, 'was interrupted');
        const settled = await signOutcome(context, known, outcome, at);
        await writeReceipted(context, trx, 'intent', settled, at);
        return { state: VoidState.RECEIPT, receipt: settled.token };
      }
      const isBurnt = known.state === 'burnt';
      return {
        state: isBurnt ? VoidState.BURNT : VoidState.RECEIPT,
        receipt: known.receipt ?? '',
      };
    });
    telemetry.log.info(
      {
        tenant: key.tenant,
        run_id: key.runId,
        agent: key.agentInstance,
        call_id: key.callId,
        burnt: answer.state === VoidState.BURNT,
        in_flight: answer.state === VoidState.IN_FLIGHT,
      },
      'A writ was voided.',
    );
    wakeRelay();
    return answer;
  };
}

function burntRow(key: CallKey, registryVersion: string, at: Date): CallRow {
  return {
    tenant: key.tenant,
    run_id: key.runId,
    agent_instance: key.agentInstance,
    call_id: key.callId,
    agent_name: UNTOLD,
    session_id: '',
    step: 0,
    tool: UNTOLD,
    side_effect: null,
    args_sha256: '',
    writ_id: '',
    definition_digest: '',
    registry_version: registryVersion,
    result_fields: '[]',
    traceparent: '',
    state: 'burnt',
    owner: '',
    attempts: 0,
    started_at: at,
    ended_at: at,
    duration_ms: null,
    stop_reason: 'cancelled',
    message: 'The writ was voided before the call was made.',
    repetition: null,
    result_kind: null,
    result_content: null,
    result_media_type: '',
    result_truncated: false,
    result_full_size: 0,
    result_full_sha256: '',
    receipt: null,
    revision: 1,
    resolve_request_id: null,
    resolve_digest: null,
    resolved_by: null,
    resolved_at: null,
  };
}
