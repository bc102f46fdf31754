import type { Clock } from './clock.ts';
import type { JsonObject } from './json-value.ts';

/** What a tool knows of the call beside its arguments (TG-6). */
export interface ToolCall {
  /** The same for every repeat of one approved call: what it did once must not happen again (TG-5). */
  readonly idempotencyKey: string;
  readonly tenant: string;
  readonly runId: string;
  /** Name of the agent's manifest. */
  readonly agentName: string;
  readonly callId: string;
  /** Aborts at the tool's timeout and when the call is called off: stop, and throw (SUP-6). */
  readonly signal: AbortSignal;
}

/**
 * A tool as a TypeScript function: exact arguments in, a JSON object out. Whatever it throws fails
 * the call; throw a {@link ToolFailure} to tell the model why.
 */
export type ToolFunction = (args: JsonObject, call: ToolCall) => Promise<JsonObject>;

/** What the gateway gives to a module of tools when it opens it. */
export interface ToolContext {
  /** A folder in which tools may keep files. */
  readonly dataDir: string;
  /** Settings by name, such as endpoints and credentials; models and workers never see them. */
  readonly variables: Readonly<Record<string, string>>;
  readonly clock: Clock;
}

/** Tools by name; disposed of when the gateway stops, where they can be. */
export type Tools = Readonly<Record<string, ToolFunction>> & Partial<AsyncDisposable>;

/** What a module that tools.yaml names must export (TG-6). */
export interface ToolModule {
  createTools(context: ToolContext): Promise<Tools>;
}

/**
 * Thrown by a tool that did not do its work: its message is shown to the model. The message of any
 * other error is not, because it may quote a secret.
 */
export class ToolFailure extends Error {
  override readonly name = 'ToolFailure';
}
