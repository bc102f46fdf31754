import { type FreezeInForce, freezesOver, frozenError } from '@writ/freeze';
import { admitEpoch } from '@writ/identity';
import { InternalError, type JsonObject } from '@writ/kernel';
import type { GatewayContext } from '../../context.ts';
import { transition } from '../../domain/call-state.ts';
import type { Counters } from '../../domain/find-loop.ts';
import { judgeCall } from '../../domain/judge-call.ts';
import type { Registry } from '../../domain/registry.ts';
import type { Tool } from '../../domain/tool.ts';
import {
  blankCall,
  type CallRow,
  callStateOf,
  findCall,
  insertCall,
  keyOf,
  restartCall,
} from '../../store/calls.ts';
import { type CountedCall, countCall, readCounters } from '../../store/counters.ts';
import { seenEpoch, storeEpoch } from '../../store/epochs.ts';
import type { GatewayTransaction } from '../../store/gateway-store.ts';
import { insertReceipt } from '../../store/receipts.ts';
import { recordInterrupted, signReceipt } from '../receipts/record-outcome.ts';
import { isOwnedByPeer } from './call-owner.ts';
import { type PresentedCall, rejectExpired } from './presented-call.ts';
import { rejectOtherCall } from './recorded-call.ts';

/**
 * Result of the first transaction of a call: `ended`, the call got an outcome in this transaction; `recorded`, the call
 * already had an outcome; `owned_by_peer`, another replica owns the call; `run`, the caller must execute the tool.
 */
export type Begun =
  | { readonly kind: 'ended' | 'recorded'; readonly call: CallRow }
  | { readonly kind: 'owned_by_peer' }
  | {
      readonly kind: 'run';
      readonly call: CallRow;
      readonly tool: Tool;
      readonly args: JsonObject;
    };

type Context = Pick<GatewayContext, 'store' | 'clock' | 'events' | 'signer'> & {
  /** The registry at the time when the call acquired its slot. */
  readonly registry: Registry;
  readonly deadReplicas: ReadonlySet<string>;
};

/**
 * Begins or resumes a call in one transaction. For a new call: runs the checks, increments the counters, checks
 * freezes, and records the intent and TOOL_START; a refusal records a receipt and TOOL_END instead. For a recorded
 * call: see {@link resumeCall} (TG-2, TG-5). Callers must not run two attempts at the same call concurrently in one
 * process.
 * @throws PreconditionError STALE_EPOCH, HALTED, FROZEN; PermissionDeniedError WRIT_EXPIRED, WRIT_MISMATCH; records
 *   nothing in these cases
 */
export function beginCall(context: Context, presented: PresentedCall): Promise<Begun> {
  const { writ, epoch } = presented;
  const work = async (trx: GatewayTransaction): Promise<Begun> => {
    const { arguments: parsed } = presented;
    const counted = { ...writ, argsHash: 'hash' in parsed ? parsed.hash : '' };
    const [seen, known, counters, freezes] = await Promise.all([
      seenEpoch(trx, writ),
      findCall(trx, writ),
      readCounters(trx, counted),
      freezesOver(trx, writ),
    ]);
    const highest = admitEpoch(seen, epoch);
    const begun =
      known === undefined
        ? await beginNew(context, trx, presented, { counted, counters, freezes })
        : await resumeCall(context, trx, presented, { known, freezes });
    if (highest !== seen) await storeEpoch(trx, writ, highest);
    return begun;
  };
  return context.store.transaction(work, { run: writ });
}

/** The data that {@link beginCall} reads for a call that has no record yet. */
interface NewCall {
  readonly counted: CountedCall;
  readonly counters: Counters;
  /** The freezes that cover the agent of the call. */
  readonly freezes: readonly FreezeInForce[];
}

async function beginNew(
  context: Context,
  trx: GatewayTransaction,
  presented: PresentedCall,
  { counted, counters, freezes }: NewCall,
): Promise<Begun> {
  const { registry, clock, signer, events } = context;
  const { writ, arguments: parsed } = presented;
  // The writ may have expired while the call waited for its slot.
  rejectExpired(presented, clock.now());
  const verdict = judgeCall(writ, registry, counters, parsed);
  const at = clock.now();
  const row = newRow(registry, presented, at);
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
  rejectFrozen(freezes);
  await countCall(trx, counted, verdict.counted);
  const call: CallRow = { ...row, owner: context.store.replicas.id, attempts: 1 };
  await insertCall(trx, call);
  await events.toolStarted(trx, call, at);
  return { kind: 'run', call, tool: verdict.tool, args: verdict.args };
}

/**
 * Resumes a recorded call: returns its outcome, records the outcome of an interrupted call, or returns `run` if the
 * tool may be executed again (TG-5).
 */
async function resumeCall(
  context: Context,
  trx: GatewayTransaction,
  presented: PresentedCall,
  { known, freezes }: { readonly known: CallRow; readonly freezes: readonly FreezeInForce[] },
): Promise<Begun> {
  const { registry, clock, store, deadReplicas } = context;
  // Another request may have recorded the call under a different writ after this request read the record.
  rejectOtherCall(known, presented);
  if (isOwnedByPeer(known, store.replicas, deadReplicas)) return { kind: 'owned_by_peer' };
  const state = callStateOf(known, false);
  const { arguments: parsed } = presented;
  const tool = registry.tools.get(known.tool);
  const { next, effect } = transition(
    state,
    // A call is not run again if the definition of its tool has changed since the call was recorded.
    tool?.digest === known.definition_digest && 'args' in parsed
      ? { kind: 'call', admitted: true }
      : { kind: 'void' },
    known.side_effect ?? 'destructive',
  );
  if (effect === 'answer') return { kind: 'recorded', call: known };
  if (effect === 'execute' && tool !== undefined && 'args' in parsed) {
    rejectExpired(presented, clock.now());
    rejectFrozen(freezes);
    const owner = store.replicas.id;
    await restartCall(trx, keyOf(known), owner);
    const call = { ...known, owner, attempts: known.attempts + 1 };
    return { kind: 'run', call, tool, args: parsed.args };
  }
  if (effect === 'record' && (next === 'error' || next === 'unknown')) {
    const { call } = await recordInterrupted(context, trx, known, next);
    return { kind: 'ended', call };
  }
  throw new InternalError(
    'INVALID_CALL_STATE',
    `A call of ${known.tool} cannot be resumed from ${state}.`,
  );
}

function rejectFrozen([freeze]: readonly FreezeInForce[]): void {
  if (freeze !== undefined) throw frozenError(freeze);
}

function newRow(registry: Registry, { writ, step, traceparent }: PresentedCall, at: Date): CallRow {
  const tool = registry.tools.get(writ.tool);
  return {
    ...blankCall(writ, at),
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
  };
}
