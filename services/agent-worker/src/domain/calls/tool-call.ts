import { isJsonObject, type JsonObject, type JsonValue } from '@writ/kernel';

/** A tool as its gateway lists it, as far as an agent needs to know. */
export interface ToolInfo {
  readonly name: string;
  readonly description: string;
  /** JSON Schema of the arguments, as text. */
  readonly inputSchemaJson: string;
}

/** What became of a tool call (TG-8). */
export type ToolStatus = 'ok' | 'error' | 'refused' | 'unknown' | 'void';

/** The gateway's answer to one call: plain JSON, since it is journaled. */
export interface ToolOutcome {
  readonly status: ToolStatus;
  /** Why it was refused or failed; empty when it went well. */
  readonly stopReason: string;
  /** One sentence for the model. */
  readonly message: string;
  /** The result byte for byte; absent without one. */
  readonly content?: string;
  readonly contentKind: 'json' | 'text' | 'image' | 'none';
  /** Proof of the outcome. A JWS. */
  readonly receipt: string;
}

/** What the supervisor is shown of a call whose receipt it gets (SV-7). */
export interface PendingReceipt {
  readonly callId: string;
  readonly receipt: string;
  readonly content?: string;
}

/** What a call gave back, as a JSON object that a model can be shown. */
export function observationOf(outcome: ToolOutcome): JsonObject {
  if (outcome.status !== 'ok') {
    return { status: outcome.status, error: outcome.stopReason, message: outcome.message };
  }
  if (outcome.contentKind !== 'json') return { text: outcome.content ?? '' };
  const value: JsonValue = JSON.parse(outcome.content ?? '{}');
  return isJsonObject(value) ? value : { value };
}
