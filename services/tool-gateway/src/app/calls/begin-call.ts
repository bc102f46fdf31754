import { admitEpoch } from '@writ/identity';
import { InternalError, type JsonObject } from '@writ/kernel';
import type { GatewayContext } from '../../context.ts';
import { transition } from '../../domain/call-state.ts';
import { judgeCall } from '../../domain/checks.ts';
import { frozenError } from '../../domain/freeze.ts';
import type { Registry } from '../../domain/registry.ts';
import type { Tool } from '../../domain/tool.ts';
import { type CallRow, findCall, insertCall, keyOf, restartCall } from '../../store/calls.ts';
import { countCall, readCounters } from '../../store/counters.ts';
import { rememberEpoch, seenEpoch } from '../../store/epochs.ts';
import { freezesOver } from '../../store/freezes.ts';
import type { GatewayTransaction } from '../../store/gateway-store.ts';
import { insertReceipt } from '../../store/receipts.ts';
import { callStateOf } from '../../wire/call-result.ts';
import { signOutcome, uncertainOutcome, writeReceipted } from '../receipts/record-outcome.ts';
import { signReceipt } from '../receipts/sign-receipt.ts';
import { isOwnedByPeer } from './call-owner.ts';
import { type PresentedCall, refuseExpired } from './presented-call.ts';

/**
 * What the first transaction of a call comes to: an outcome, or one that it had before; another replica
 * that is at it; or a tool to run.
 */
export type Begun =
  | { readonly kind: 'ended' | 'recorded'; readonly call: CallRow }
  | { readonly kind: 'elsewhere' }
  | {
      readonly kind: 'run';
      readonly call: CallRow;
      readonly tool: Tool;
      readonly args: JsonObject;
    };

type Context = Pick<GatewayContext, 'store' | 'clock' | 'events' | 'signer'> & {
  /** As it was when the call got its place. */
  readonly registry: Registry;
  /** Replicas that have ended. */
  readonly deadReplicas: ReadonlySet<string>;
};

/**
 * Checks, counters, freeze, intent and TOOL_START in one transaction (TG-2, TG-5); a refusal and its
 * receipt take their place. Nobody else of this process works on the call.
 * @throws PreconditionError STALE_EPOCH, HALTED, FROZEN; PermissionDeniedError WRIT_EXPIRED; nothing
 *   is recorded then
 */
export function beginCall(context: Context, presented: PresentedCall): Promise<Begun> {
  return context.store.transaction(async (trx) => {
    const { writ, epoch } = presented;
    const seen = await seenEpoch(trx, writ);
    const highest = admitEpoch(seen, epoch);
    const known = await findCall(trx, writ);
    const begun =
      known === undefined
        ? await beginNew(context, trx, presented)
        : await resumeCall(context, trx, known, presented);
    if (highest !== seen) await rememberEpoch(trx, writ, highest);
    return begun;
  });
}

async function beginNew(
  context: Context,
  trx: GatewayTransaction,
  presented: PresentedCall,
): Promise<Begun> {
  const { registry, clock, signer, events } = context;
  const { writ, arguments: parsed } = presented;
  // It was valid when the call came, but the call may have waited for its place.
  refuseExpired(presented, clock.now());
  const counted = { ...writ, argsHash: 'hash' in parsed ? parsed.hash : '' };
  const verdict = judgeCall(writ, registry, await readCounters(trx, counted), parsed);
  const at = clock.now();
  const row = newRow(context, presented, at);
  if (verdict.kind === 'refuse') {
    await countCall(trx, counted, verdict.counted);
    const { stopReason, message, repetition } = verdict;
    const refused = await signReceipt(signer, {
      ...row,
      state: 'refused',
      ended_at: at,
      stop_reason: stopReason,
      message,
      repetition: repetition === undefined ? null : JSON.stringify(repetition),
      revision: 1,
    });
    await insertCall(trx, refused.call);
    await insertReceipt(trx, writ, { ...refused, revision: 1 }, at);
    await events.toolEnded(trx, refused.call, at);
    return { kind: 'ended', call: refused.call };
  }
  await refuseFrozen(trx, presented);
  await countCall(trx, counted, verdict.counted);
  const call: CallRow = { ...row, owner: context.store.replicas.id, attempts: 1 };
  await insertCall(trx, call);
  await events.toolStarted(trx, call, at);
  return { kind: 'run', call, tool: verdict.tool, args: verdict.args };
}

/** Goes on with a call that is on record: gives its outcome, or runs again what may run again (TG-5). */
async function resumeCall(
  context: Context,
  trx: GatewayTransaction,
  known: CallRow,
  presented: PresentedCall,
): Promise<Begun> {
  const { registry, clock, store, deadReplicas } = context;
  if (isOwnedByPeer(known, store.replicas, deadReplicas)) return { kind: 'elsewhere' };
  const state = callStateOf(known, false);
  const { arguments: parsed } = presented;
  const tool = registry.tools.get(known.tool);
  const { next, effect } = transition(
    state,
    // What was reviewed and begun may not be run as something else.
    tool?.digest === known.definition_digest && 'args' in parsed
      ? { kind: 'call', admitted: true }
      : { kind: 'void' },
    known.side_effect ?? 'destructive',
  );
  if (effect === 'answer') return { kind: 'recorded', call: known };
  if (effect === 'execute' && tool !== undefined && 'args' in parsed) {
    refuseExpired(presented, clock.now());
    await refuseFrozen(trx, presented);
    const owner = store.replicas.id;
    await restartCall(trx, keyOf(known), owner);
    const call = { ...known, owner, attempts: known.attempts + 1 };
    return { kind: 'run', call, tool, args: parsed.args };
  }
  if (effect === 'record' && (next === 'error' || next === 'unknown')) {
    const at = clock.now();
    const outcome = uncertainOutcome(known, next, 'was interrupted');
    const receipted = await signOutcome(context, known, outcome, at);
    await writeReceipted(context, trx, 'intent', receipted, at);
    return { kind: 'ended', call: receipted.call };
  }
  throw new InternalError(
    'INVALID_CALL_STATE',
    `A call of ${known.tool} cannot go on from ${state}.`,
  );
}

async function refuseFrozen(trx: GatewayTransaction, { writ }: PresentedCall): Promise<void> {
  const [freeze] = await freezesOver(trx, writ);
  if (freeze !== undefined) throw frozenError(freeze);
}

function newRow(
  { registry }: Context,
  { writ, step, traceparent }: PresentedCall,
  at: Date,
): CallRow {
  const tool = registry.tools.get(writ.tool);
  return {
    tenant: writ.tenant,
    run_id: writ.runId,
    agent_instance: writ.agentInstance,
    call_id: writ.callId,
    agent_name: writ.agentName,
    session_id: writ.sessionId,
    step,
    tool: writ.tool,
    side_effect: tool?.sideEffect ?? null,
    args_sha256: writ.argsSha256,
    writ_id: writ.id,
    definition_digest: tool?.digest ?? '',
    registry_version: registry.version,
    result_fields: JSON.stringify(writ.resultFields),
    traceparent,
    state: 'intent',
    owner: '',
    attempts: 0,
    started_at: at,
    ended_at: null,
    duration_ms: null,
    stop_reason: '',
    message: '',
    repetition: null,
    result_kind: null,
    result_content: null,
    result_media_type: '',
    result_truncated: false,
    result_full_size: 0,
    result_full_sha256: '',
    receipt: null,
    revision: 0,
    resolve_request_id: null,
    resolve_digest: null,
    resolved_by: null,
    resolved_at: null,
  };
}
