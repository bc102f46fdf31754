import type { JsonObject } from '@writ/kernel';
import type { GatewayContext } from '../../context.ts';
import type { ToolResult } from '../../domain/result.ts';
import { type CallRow, keyOf, writeOutcome } from '../../store/calls.ts';
import { isPurged } from '../../store/freezes.ts';
import type { GatewayTransaction } from '../../store/gateway-store.ts';
import { insertReceipt } from '../../store/receipts.ts';
import { type ReceiptedCall, signReceipt } from './sign-receipt.ts';

/** What became of a call. */
export interface Outcome {
  readonly state: 'ok' | 'error' | 'unknown';
  /** Empty when it went well. */
  readonly stopReason: string;
  /** One sentence for the model. */
  readonly message: string;
  readonly result?: ToolResult;
  /** Declared fields of the result, by path. */
  readonly fields?: JsonObject;
  /** How long the tool ran, where it is known. */
  readonly durationMs?: number;
  /** Who found out, of an outcome that was unknown. */
  readonly resolution?: {
    readonly requestId: string;
    readonly digest: string;
    readonly resolvedBy: string;
  };
}

/** Signs the receipt of an outcome that is about to be recorded for `call`. */
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
    ...(resolution === undefined
      ? {}
      : {
          resolve_request_id: resolution.requestId,
          resolve_digest: resolution.digest,
          resolved_by: resolution.resolvedBy,
          resolved_at: at,
        }),
  };
  return await signReceipt(signer, row, fields);
}

/**
 * Writes an outcome, its receipt and, for the first one, TOOL_END (TG-5, TG-8).
 * @param from where the call must still stand
 * @returns false when it stands elsewhere by now, and nothing was written
 */
export async function writeReceipted(
  { events }: Pick<GatewayContext, 'events'>,
  trx: GatewayTransaction,
  from: 'intent' | 'unknown',
  { call, receiptId, token }: ReceiptedCall,
  at: Date,
): Promise<boolean> {
  const key = keyOf(call);
  // A run that ended meanwhile may have said that nothing is kept.
  const forget = await isPurged(trx, key);
  const kept = forget ? { ...call, result_content: null, message: '' } : call;
  if (!(await writeOutcome(trx, from, kept))) return false;
  await insertReceipt(trx, key, { receiptId, token, revision: call.revision }, at);
  if (from === 'intent') await events.toolEnded(trx, call, at);
  return true;
}

/** The outcome of a call that was begun, and whose end nobody saw (TG-5). */
export function uncertainOutcome(call: CallRow, state: 'error' | 'unknown', why: string): Outcome {
  return state === 'error'
    ? { state, stopReason: `tool_error:${call.tool}`, message: `${call.tool} ${why}.` }
    : {
        state,
        stopReason: `outcome_unknown:${call.tool}`,
        message: `${call.tool} ${why}, and nobody knows whether it did its work.`,
      };
}
