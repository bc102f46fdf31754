import type { JsonObject } from '@writ/kernel';

/** What became of a call, by the gateway's word (TG-8). */
export type ReceiptStatus = 'ok' | 'error' | 'refused' | 'unknown' | 'void';

/** A receipt whose signature was verified. */
export interface Receipt {
  readonly id: string;
  readonly tenant: string;
  readonly runId: string;
  readonly instance: string;
  readonly callId: string;
  /** From 1; of a call the highest counts. */
  readonly revision: number;
  readonly tool: string;
  readonly writId: string;
  readonly status: ReceiptStatus;
  /** Empty when it went well. */
  readonly stopReason: string;
  /** SHA-256 of the result's content; empty without a result. */
  readonly resultSha256: string;
  /** SHA-256 of the argument bytes; empty when the call was burnt unseen. */
  readonly argsSha256: string;
  readonly definitionDigest: string;
  readonly registryVersion: string;
  /** The declared result fields, by dotted path. */
  readonly fields: JsonObject;
  /** Step of the agent, as the call said it. */
  readonly step: number;
  /** When intent, or the refusal, was recorded; undefined when the receipt does not say. */
  readonly startedAt: Date | undefined;
  /** When the outcome was recorded; undefined when the receipt does not say. */
  readonly endedAt: Date | undefined;
  /** Who resolved an unknown outcome; empty when nobody had to. */
  readonly resolvedBy: string;
  /** All of it, as JSON text. */
  readonly claimsJson: string;
}

/** An approved tool call, as far as a receipt has to fit it. */
export interface ApprovedCall {
  readonly tool: string;
  readonly argsSha256: string;
}

/**
 * Whether a receipt can be about an approved call: there is one, of this tool and these argument
 * bytes. A burnt call was never seen by the gateway, so that its receipt names only the call.
 */
export function matchesCall(
  receipt: Receipt,
  call: ApprovedCall | undefined,
): call is ApprovedCall {
  if (call === undefined) return false;
  if (receipt.status === 'void') return true;
  return receipt.tool === call.tool && receipt.argsSha256 === call.argsSha256;
}
