import { isJsonObject, isWritError, type JsonObject, parseJsonStrict } from '@writ/kernel';
import type { ToolOutput } from '../domain/cap-output.ts';
import type { ToolDefinition } from '../domain/tool.ts';

/** One execution of a tool. */
export interface ToolInvocation {
  readonly tool: string;
  /** The exact text whose SHA-256 the writ contains. */
  readonly argumentsJson: string;
  /** The parsed arguments. */
  readonly args: JsonObject;
  /** The same for every repeat of one approved call (TG-5). */
  readonly idempotencyKey: string;
  readonly tenant: string;
  readonly runId: string;
  readonly agentName: string;
  readonly callId: string;
  /** W3C traceparent of the execution; undefined outside a trace. */
  readonly traceparent?: string | undefined;
  readonly deadline: Date;
  /** Time until the deadline, in milliseconds. */
  readonly timeoutMs: number;
  /** Aborts at the deadline and when the call is cancelled. */
  readonly signal: AbortSignal;
}

/**
 * Result of an execution. `output`: the tool returned a valid result. `failed`: the tool was not executed, or it
 * failed. `bad_result`: the tool returned an invalid result. `cancelled`: the call was cancelled before it was sent.
 * `lost`: no response arrived or the call was cancelled after it was sent, so the tool may have been executed. Messages
 * are one sentence for the model.
 */
export type ToolAnswer =
  | { readonly kind: 'output'; readonly output: ToolOutput }
  | {
      readonly kind: 'failed' | 'bad_result' | 'cancelled' | 'lost';
      readonly message: string;
    };

/** A tool as its source describes it; tools.yaml takes precedence. */
export type OfferedTool = Pick<
  ToolDefinition,
  'description' | 'inputSchema' | 'sideEffect' | 'risk'
> &
  Partial<Pick<ToolDefinition, 'timeoutMs' | 'maxCallsPerAgent'>>;

/** Offered tools by name. */
export type OfferedTools = Readonly<Record<string, OfferedTool>>;

/** A source of tools (TG-6): one implementation for each kind, one instance for each source. */
export interface ToolSource {
  /**
   * Lists the tools that the source describes; absent when tools.yaml or the gateway itself describes them. Rejects
   * when the source is unreachable.
   */
  offer?(): Promise<OfferedTools>;
  /**
   * Calls `changed` when the offered tools may have changed, until the source is closed; absent when they cannot
   * change.
   */
  watch?(changed: (offered: OfferedTools) => void): void;
  /** Returns the tools that the source does not have; absent when that is unknown. */
  lacks?(tools: readonly string[]): readonly string[];
  /** Executes a tool. Never rejects: every failure is an answer and affects only this call. */
  invoke(invocation: ToolInvocation): Promise<ToolAnswer>;
  /** Releases the resources of the source. */
  close(): Promise<void>;
}

/** Longest message of a tool that is passed to the model, in characters. */
export const MAX_MESSAGE_LENGTH = 1_000;

/** Largest JSON result that is parsed, in bytes: the limit of a gRPC message. */
const MAX_RESULT_BYTES = 4 * 1024 * 1024;

/** The answer for a JSON text: its object, or `bad_result`. */
export function toJsonAnswer(tool: string, content: string): ToolAnswer {
  try {
    const value = parseJsonStrict(content, { field: 'result', maxBytes: MAX_RESULT_BYTES });
    if (isJsonObject(value)) return { kind: 'output', output: { kind: 'json', content, value } };
  } catch (error) {
    if (!isWritError(error)) throw error;
  }
  return badResult(tool);
}

/** The answer of a tool that returned an invalid result. */
export function badResult(tool: string): ToolAnswer {
  return { kind: 'bad_result', message: `${tool} returned an invalid result.` };
}
