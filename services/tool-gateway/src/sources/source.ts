import type { JsonObject } from '@writ/kernel';
import type { ToolOutput } from '../domain/result.ts';
import type { OfferedTool } from './offered-tool.ts';

/** One run of a tool. */
export interface ToolInvocation {
  readonly tool: string;
  /** The exact text that was signed. */
  readonly argumentsJson: string;
  /** What it says. */
  readonly args: JsonObject;
  /** The same for every repeat of one approved call (TG-5). */
  readonly idempotencyKey: string;
  readonly tenant: string;
  readonly runId: string;
  readonly agentName: string;
  readonly callId: string;
  /** W3C traceparent of the execution, for tools that trace; undefined outside of a trace. */
  readonly traceparent?: string | undefined;
  /** When the gateway stops waiting, and how long that is, in milliseconds. */
  readonly deadline: Date;
  readonly timeoutMs: number;
  /** Aborts at the deadline, and when the call is called off. */
  readonly signal: AbortSignal;
}

/**
 * What came of a run. `failed`: the tool says that it did not do its work. `bad_result`: it gave
 * back something that is no result. `lost`: no answer came, so nobody knows what it did. Messages
 * are one sentence for the model.
 */
export type ToolAnswer =
  | { readonly kind: 'output'; readonly output: ToolOutput }
  | { readonly kind: 'failed' | 'bad_result' | 'lost'; readonly message: string };

/** Where tools come from (TG-6): one implementation for each kind, one instance for each source. */
export interface ToolSource {
  /**
   * What the source says of tools that it has, by name; absent where tools.yaml alone describes
   * them. Rejects when it cannot be asked.
   */
  offer?(): Promise<Readonly<Record<string, OfferedTool>>>;
  /**
   * Says from now on, until the source is closed, when what it offers may have changed; absent where
   * that does not happen.
   */
  watch?(changed: (offered: Readonly<Record<string, OfferedTool>>) => void): void;
  /** Those of these tools that it does not have; absent where nobody can know. */
  lacks?(tools: readonly string[]): readonly string[];
  /** Runs a tool. Never rejects; whatever goes wrong is an answer, and harms only this call. */
  invoke(invocation: ToolInvocation): Promise<ToolAnswer>;
  /** Lets go of what the source holds. */
  close(): Promise<void>;
}
