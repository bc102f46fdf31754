import type { JsonObject, RunMeta } from '@writ/kernel';
import type { AgentManifest } from '../domain/agent/manifest.ts';
import type { Message } from '../domain/agent/message.ts';
import type { Action, Decision } from '../domain/calls/decision.ts';
import type { LlmOutcome, LlmRequest } from '../domain/calls/model-call.ts';
import type { ToolInfo, ToolOutcome } from '../domain/calls/tool-call.ts';
import type { Stop } from './unwinding.ts';

/**
 * An agent is a plain async function over a context (AG-1). Everything that it does goes through the
 * context, is journaled, and is given back from the journal when it runs again from its start after
 * a crash or a wait; so between two operations it may compute, but neither read a clock nor do I/O.
 */
export interface Agent {
  /** The agent's instance within its run. */
  readonly id: string;
  readonly kind: string;
  /** Runs until it has ended: with an approved final, or through {@link AgentContext.stop}. */
  run(ctx: AgentContext, inbox: readonly Message[]): Promise<void>;
}

/** Builds an agent from its definition. */
export type AgentFactory = (manifest: AgentManifest, instance: string) => Agent;

/** An answer of the model, and the id of the call that it came from. */
export type ModelAnswer = LlmOutcome & { readonly callId: string };

/** What an agent proposes: a model's raw text, which the supervisor judges itself, or an action (SV-1). */
export type Proposal = (
  | { readonly rawText: string; readonly action?: never }
  | { readonly action: Action; readonly rawText?: never }
) & {
  /** The model call that it came from. */
  readonly modelCallId?: string;
  /** The final was composed after the steps ran out. */
  readonly composed?: boolean;
};

/** What became of a proposal. */
export type ProposalOutcome = { readonly callId: string; readonly decision: Decision } & (
  | {
      /** The tool ran; what it gave back. */
      readonly kind: 'executed';
      readonly result: ToolOutcome;
      readonly observation: JsonObject;
    }
  | {
      /** Policy, a person or a limit said no. */
      readonly kind: 'refused';
      readonly stop: Stop;
    }
  | {
      /** It was approved, but the gateway refused it or the tool failed. */
      readonly kind: 'failed';
      readonly stop: Stop;
      readonly result: ToolOutcome;
    }
  | {
      /** The final answer was approved: the agent has ended. */
      readonly kind: 'finished';
    }
);

/** What an agent can do (RT-1). Each result is journaled once. */
export interface AgentContext {
  readonly manifest: AgentManifest;
  readonly meta: RunMeta;

  /** Throws when the run was cancelled or is out of time (SUP-5); every operation does it, too. */
  check(): void;
  /** The time, the same whenever the agent runs again. */
  now(): Date;
  /** A number from 0 up to 1, the same whenever the agent runs again. */
  random(): number;
  /** Writes a log line once, however often the agent runs again. Ids and words only, never content. */
  log(message: string, fields?: Readonly<Record<string, string | number | boolean>>): void;

  /** The tools of the agent's manifest as the gateway lists them. */
  tools(): Promise<readonly ToolInfo[]>;
  /** Asks a model through the meter; a failure is an outcome, not an error. */
  llm(request: LlmRequest): Promise<ModelAnswer>;
  /**
   * Has an action reviewed, waits for a person if it comes to that, and executes it with the writ.
   * What the next review must know of it (receipt, result) is carried there by itself.
   */
  propose(proposal: Proposal): Promise<ProposalOutcome>;
  /** Sleeps until a signal of this name came, then answers its payload. Rows, no memory. */
  sleepUntilSignal(name: string): Promise<JsonObject>;

  /** Runs one think-act cycle: what it did is committed together, before the next one begins. */
  step<T>(step: number, work: () => Promise<T>): Promise<T>;
  /** Ends the agent. */
  stop(stop: Stop): never;
}
