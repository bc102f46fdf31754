import type { AgentRef, JsonObject, RunMeta } from '@writ/kernel';
import type { AgentManifest } from '../domain/agent/manifest.ts';
import type { Message, Reply } from '../domain/agent/message.ts';
import type { Action, Decision } from '../domain/calls/decision.ts';
import type { ChatTurn, LlmOutcome, LlmRequest } from '../domain/calls/model-call.ts';
import type { ToolInfo, ToolOutcome } from '../domain/calls/tool-call.ts';
import type { Guardrail } from '../domain/guardrails/guardrails.ts';
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

/** What a parent may narrow of the agent that it hands work to (SUP-9). */
export interface SpawnOptions {
  /** Fewer tools than its manifest has; left out for all of them. */
  readonly tools?: readonly string[];
}

/** What became of a delegation. */
export type SpawnOutcome = { readonly callId: string } & (
  | { readonly kind: 'spawned'; readonly child: AgentRef }
  | {
      /** Policy or a person said no. */
      readonly kind: 'refused';
      readonly stop: Stop;
      readonly message: string;
    }
  | {
      /** The run's headcount is used up; the cap's own sentence. */
      readonly kind: 'no_slot';
      readonly message: string;
    }
  | {
      /** It was approved, but could not be set up. */
      readonly kind: 'failed';
      readonly stopReason: string;
      readonly message: string;
    }
);

/** What became of work that was handed over: a reply, or why there is none (AG-3). */
export type HandoffOutcome = Exclude<SpawnOutcome, { kind: 'spawned' }> | Reply;

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

/** The state of an agent between two steps, from which it can go on without what led there (RT-1). */
export interface Checkpoint {
  /** Plain JSON: everything that the agent knows, but for the items. */
  readonly state: object;
  /** What the agent's lists grew by since the checkpoint before; stored beside the state, once. */
  readonly added?: readonly unknown[];
  /** Number of the first item, from 0 and over all checkpoints, that the agent needs back. */
  readonly needsFrom?: number;
}

/** The latest checkpoint of an agent. */
export interface Restored {
  readonly state: unknown;
  /** The items from its `needsFrom` on. */
  readonly items: readonly unknown[];
}

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
  /**
   * Writes a log line once, however often the agent runs again: ids and words only. Content goes to
   * the journal alone.
   */
  log(
    message: string,
    fields?: Readonly<Record<string, string | number | boolean>>,
    content?: JsonObject,
  ): void;

  /** The tools of the agent's manifest as the gateway lists them. */
  tools(): Promise<readonly ToolInfo[]>;
  /** Asks a model through the meter; a failure is an outcome, not an error. */
  llm(request: LlmRequest): Promise<ModelAnswer>;
  /**
   * Has an action reviewed, waits for a person if it comes to that, and executes it with the writ.
   * What the next review must know of it (receipt, result) is carried there by itself.
   */
  propose(proposal: Proposal): Promise<ProposalOutcome>;
  /** Proposes a native tool call: review and execution under one call_id (SV-1, TG-1). */
  tool(tool: string, argumentsJson: string, modelCallId?: string): Promise<ProposalOutcome>;
  /**
   * Proposes the final answer. Approved, it ends the agent, and whoever asked it is told in the same
   * transaction (AG-3).
   */
  reply(
    answer: string,
    options?: Pick<Proposal, 'modelCallId' | 'composed'>,
  ): Promise<ProposalOutcome>;

  /** Hands work to an agent of the manifest's sub_agents, after review; does not wait for it (SUP-9). */
  spawn(agent: string, task: string, options?: SpawnOptions): Promise<SpawnOutcome>;
  /**
   * Waits for what a child comes to, then ends it, whatever that is, so that its slot is free again.
   * @param timeoutMs left out for that of the manifest; stands still while the child is parked (SB-4)
   */
  ask(child: AgentRef, timeoutMs?: number): Promise<Reply>;
  /** Spawns and asks. */
  handOff(agent: string, task: string, options?: SpawnOptions): Promise<HandoffOutcome>;

  /** Tells everybody who follows a topic; it must be the manifest's output_topic (AG-5). */
  emit(topic: string, item: JsonObject): Promise<void>;
  /** Hears of a topic from now on, as signals `new_feed_item`; it must be in follow_topics (AG-5). */
  follow(topic: string): Promise<void>;
  /** Sleeps until a signal of this name came, then answers its payload. Rows, no memory. */
  sleepUntilSignal(name: string): Promise<JsonObject>;
  /** Sleeps for a time, in milliseconds. Rows, no memory. */
  sleep(ms: number): Promise<void>;

  /**
   * Runs branches side by side, each with a context of its own, and answers when all are done; the
   * first error by their order is thrown then. While some wait, the others go on; when all wait, the
   * agent sleeps.
   */
  all<T>(branches: readonly ((ctx: AgentContext) => Promise<T>)[]): Promise<T[]>;
  /**
   * Runs one think-act cycle: what it did is committed together, before the next one begins.
   * @param waitsFor the signal that it begins with, so that watchers can answer; empty for none
   */
  step<T>(step: number, work: () => Promise<T>, waitsFor?: string): Promise<T>;
  /** Tells watchers, once, that a flow began or ended, with `ok` or a stop reason (HK-1). */
  flow(moment: 'started' | 'ended', status?: string): void;
  /** Tells watchers, once, that a guardrail tripped (AG-6, HK-1). */
  trip(guardrail: Guardrail): void;

  /**
   * Gives back the latest checkpoint, and goes on there; undefined when there is none. What an agent
   * does before is done again whenever it runs again, so it should be little. Once, outside branches.
   */
  restore(): Promise<Restored | undefined>;
  /**
   * Has the agent go on from here when it runs again, instead of from where it restored; between two
   * steps, outside branches. It is committed with the step before.
   */
  checkpoint(checkpoint: Checkpoint): void;

  /** The turns that earlier runs of this agent left in the session, oldest first (AG-8). */
  recall(): Promise<readonly ChatTurn[]>;
  /**
   * Has the session remember these turns of this run, in place of those given before; they are kept
   * when the agent ends with an approved answer, and only where retention is PERMANENT (SUP-4, AG-8).
   * @param items how many items of its checkpoints, which are turns then, come before them
   */
  remember(turns: readonly ChatTurn[], items?: number): void;

  /** Ends the agent. */
  stop(stop: Stop): never;
}
