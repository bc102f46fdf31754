import { isJsonObject, type JsonObject, type JsonValue } from '@writ/kernel';

/** A tool in the gateway's catalog. */
export interface ToolInfo {
  readonly name: string;
  readonly description: string;
  /** JSON Schema of the arguments, as text. */
  readonly inputSchemaJson: string;
}

/** Status of a tool call (TG-8). */
export type ToolStatus = 'ok' | 'error' | 'refused' | 'unknown' | 'void';

/** The gateway's response to a tool call. Plain JSON, because it is journaled. */
export interface ToolOutcome {
  readonly status: ToolStatus;
  /** Why the call was refused or failed; empty on success. */
  readonly stopReason: string;
  /** One sentence for the model. */
  readonly message: string;
  /** The result, unchanged byte for byte; absent when the tool returned no result. */
  readonly content?: string;
  readonly contentKind: 'json' | 'text' | 'image' | 'none';
  /** Signed receipt of the outcome (JWS). */
  readonly receipt: string;
}

/** A receipt and the result of the call, to be attached to the next review (SV-7). */
export interface PendingReceipt {
  readonly callId: string;
  readonly receipt: string;
  readonly content?: string;
}

/** Converts an outcome into a JSON object for the model. */
export function observationOf(outcome: ToolOutcome): JsonObject {
  if (outcome.status !== 'ok') {
    return { status: outcome.status, error: outcome.stopReason, message: outcome.message };
  }
  if (outcome.contentKind !== 'json') return { text: outcome.content ?? '' };
  const value: JsonValue = JSON.parse(outcome.content ?? '{}');
  return isJsonObject(value) ? value : { value };
}
