import type { JsonObject as StructInit } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { isPurged } from '@writ/freeze';
import { mintReceipt, type Signer } from '@writ/identity';
import { type JsonObject, sha256Hex } from '@writ/kernel';
import type { GatewayContext } from '../../context.ts';
import type { ToolResult } from '../../domain/cap-output.ts';
import { type CallRow, keyOf, updateOutcome } from '../../store/calls.ts';
import type { GatewayTransaction } from '../../store/gateway-store.ts';
import { insertReceipt } from '../../store/receipts.ts';
import { statusOf } from '../../wire/call.ts';

/** Outcome of a call. */
export interface Outcome {
  readonly state: 'ok' | 'error' | 'unknown';
  /** Empty for `ok`. */
  readonly stopReason: string;
  /** One sentence for the model. */
  readonly message: string;
  readonly result?: ToolResult;
  /** The result fields that the writ requests, by path. */
  readonly fields?: JsonObject;
  /** Duration of the execution of the tool, when known. */
  readonly durationMs?: number;
  /** The operator's resolution of an unknown outcome. */
  readonly resolution?: {
    readonly requestId: string;
    readonly digest: string;
    readonly resolvedBy: string;
  };
}

/** A call with the signed receipt of its outcome. */
export interface ReceiptedCall {
  readonly call: CallRow;
  readonly receiptId: string;
  readonly token: string;
}

/** Applies an outcome to `call` and signs its receipt. */
export async function signOutcome(
  { signer }: Pick<GatewayContext, 'signer'>,
  call: CallRow,
  { state, stopReason, message, result, fields, durationMs, resolution }: Outcome,
  at: Date,
): Promise<ReceiptedCall> {
  const row: CallRow = {
    ...call,
    state,
    ended_at: at,
    duration_ms: durationMs ?? call.duration_ms,
    stop_reason: stopReason,
    message,
    result_kind: result?.kind ?? null,
    result_content: result?.content ?? null,
    result_media_type: result?.mediaType ?? '',
    result_truncated: result?.truncated ?? false,
    result_full_size: result?.fullSizeBytes ?? 0,
    result_full_sha256: result?.fullSha256 ?? '',
    revision: call.revision + 1,
    ...(resolution !== undefined && {
      resolve_request_id: resolution.requestId,
      resolve_digest: resolution.digest,
      resolved_by: resolution.resolvedBy,
      resolved_at: at,
    }),
  };
  return await signReceipt(signer, row, fields);
}

/** Signs the receipt of a call whose row has its outcome and revision, and adds it to the row (TG-8). */
export async function signReceipt(
  signer: Signer,
  call: CallRow,
  fields: JsonObject = {},
): Promise<ReceiptedCall> {
  const { token, id: receiptId } = await mintReceipt(signer, {
    tenant: call.tenant,
    runId: call.run_id,
    agent: { name: call.agent_name, instance: call.agent_instance },
    callId: call.call_id,
    tool: call.tool,
    writId: call.writ_id,
    status: statusOf(call),
    stopReason: call.stop_reason,
    resultSha256: call.result_content === null ? '' : sha256Hex(call.result_content),
    resultFields: structuredClone(fields) as StructInit,
    argsSha256: call.args_sha256,
    definitionDigest: call.definition_digest,
    registryVersion: call.registry_version,
    startTime: timestampFromDate(call.started_at),
    endTime: timestampFromDate(endOf(call)),
    revision: call.revision,
    resolvedBy: call.resolved_by ?? '',
    step: call.step,
  });
  return { call: { ...call, receipt: token }, receiptId, token };
}

/**
 * Writes an outcome, its receipt and, for the first outcome, TOOL_END (TG-5, TG-8).
 * @param from the state that the call must have
 * @returns false when the call has another state, and nothing was written
 */
export async function writeOutcome(
  { events }: Pick<GatewayContext, 'events'>,
  trx: GatewayTransaction,
  from: 'intent' | 'unknown',
  { call, receiptId, token }: ReceiptedCall,
): Promise<boolean> {
  const key = keyOf(call);
  const at = endOf(call);
  // The run may have ended since the call began, with a retention that keeps no results.
  const purged = await isPurged(trx, key);
  const kept = purged ? { ...call, result_content: null, message: '' } : call;
  if (!(await updateOutcome(trx, from, kept))) return false;
  await insertReceipt(trx, key, { receiptId, token, revision: call.revision }, at);
  if (from === 'intent') await events.toolEnded(trx, call, at);
  return true;
}

/**
 * Records the outcome of a call that was interrupted between intent and outcome (TG-5).
 * @param state `error` for a tool without side effects, `unknown` otherwise
 */
export async function recordInterrupted(
  context: Pick<GatewayContext, 'clock' | 'signer' | 'events'>,
  trx: GatewayTransaction,
  call: CallRow,
  state: 'error' | 'unknown',
): Promise<ReceiptedCall> {
  const { tool } = call;
  const outcome: Outcome =
    state === 'error'
      ? { state, stopReason: `tool_error:${tool}`, message: `${tool} was interrupted.` }
      : {
          state,
          stopReason: `outcome_unknown:${tool}`,
          message: `${tool} was interrupted, and its outcome is unknown.`,
        };
  const receipted = await signOutcome(context, call, outcome, context.clock.now());
  await writeOutcome(context, trx, 'intent', receipted);
  return receipted;
}

function endOf({ ended_at, started_at }: CallRow): Date {
  return ended_at ?? started_at;
}
