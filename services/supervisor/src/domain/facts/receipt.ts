import type { JsonObject } from '@writ/kernel';

/** The outcome of a call as reported by the gateway (TG-8). */
export type ReceiptStatus = 'ok' | 'error' | 'refused' | 'unknown' | 'void';

/** A receipt whose signature was verified. */
export interface Receipt {
  readonly id: string;
  readonly tenant: string;
  readonly runId: string;
  readonly instance: string;
  readonly callId: string;
  /** From 1; the highest revision of a call counts. */
  readonly revision: number;
  readonly tool: string;
  readonly writId: string;
  readonly status: ReceiptStatus;
  /** Empty after a success. */
  readonly stopReason: string;
  /** SHA-256 of the content of the result; empty without a result. */
  readonly resultSha256: string;
  /** SHA-256 of the argument bytes; empty for a call that was voided before it arrived. */
  readonly argsSha256: string;
  readonly definitionDigest: string;
  readonly registryVersion: string;
  /** The declared result fields, by dotted path. */
  readonly fields: JsonObject;
  /** Step of the agent, as given in the call. */
  readonly step: number;
  /** Time of the recorded intent, or of the refusal; undefined when the receipt has none. */
  readonly startedAt: Date | undefined;
  /** Time of the recorded outcome; undefined when the receipt has none. */
  readonly endedAt: Date | undefined;
  /** The person who resolved an unknown outcome; empty when there is none. */
  readonly resolvedBy: string;
  /** All claims as JSON. */
  readonly claimsJson: string;
}

/** The fields of an approved tool call that a receipt must match. */
export interface ApprovedCall {
  readonly tool: string;
  readonly argsSha256: string;
}

/**
 * Whether a receipt matches an approved call, that is, has the same tool and the same argument digest. The receipt of a
 * voided call contains neither the tool nor the arguments, because the gateway never received the call, so it matches
 * the approved call regardless of them.
 */
export function matchesCall(
  receipt: Receipt,
  call: ApprovedCall | undefined,
): call is ApprovedCall {
  if (call === undefined) return false;
  if (receipt.status === 'void') return true;
  return receipt.tool === call.tool && receipt.argsSha256 === call.argsSha256;
}
