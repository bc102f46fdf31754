import type {
  AgentCheckpoint,
  AgentRef,
  FollowOptions,
  JsonObject,
  ModelAnswer,
  PriorityName,
  RestoredAgent,
  RunMeta,
} from '@writ/kernel';
import type { AgentManifest } from '../domain/agent/manifest.ts';
import type { Message, Reply } from '../domain/agent/message.ts';
import type { Action, Decision } from '../domain/calls/decision.ts';
import type { ChatTurn, LlmRequest } from '../domain/calls/model-call.ts';
import type { ToolInfo, ToolOutcome } from '../domain/calls/tool-call.ts';
import type { Guardrail } from '../domain/guardrails/guardrails.ts';
import type { Stop } from './unwinding.ts';

/**
 * An agent is a plain async function over a context (AG-1). All its effects go through the context
 * and are journaled; after a crash or a wait it runs again from its start and gets the journaled
 * results. Between two operations it must be deterministic: no clock, no randomness, no I/O.
 */
export interface Agent {
  /** The agent's instance within its run. */
  readonly id: string;
  readonly kind: string;
  /**
   * Runs until the agent has ended, with an approved final answer or through {@link
   * AgentContext.stop}.
   */
  run(ctx: AgentContext, inbox: readonly Message[]): Promise<void>;
}

/** Creates an agent from its manifest. */
export type AgentFactory = (manifest: AgentManifest, instance: string) => Agent;

export type { ModelAnswer };

/** A proposal: a model's raw text, which the supervisor parses, or an action (SV-1). */
export type Proposal = (
  | { readonly rawText: string; readonly action?: never }
  | { readonly action: Action; readonly rawText?: never }
) & {
  /** The model call that produced it. */
  readonly modelCallId?: string;
  /** Whether the final answer was composed after the steps were used up. */
  readonly composed?: boolean;
};

/** Restrictions of a child by its parent (SUP-9). */
export interface SpawnOptions {
  /** A subset of the tools in the child's manifest, not empty; default: all of them. */
  readonly tools?: readonly string[];
  /** A subset of the models in the child's manifest, not empty; default: all of them. */
  readonly models?: readonly string[];
  /** A lower priority than that of the child's manifest. */
  readonly priority?: PriorityName;
}

/** The result of a delegation. */
export type SpawnOutcome = { readonly callId: string } & (
  | { readonly kind: 'spawned'; readonly child: AgentRef }
  | {
      /** Refused by policy or by a human. */
      readonly kind: 'refused';
      readonly stop: Stop;
      readonly message: string;
    }
  | {
      /** No slot in the run's headcount; the message is spawn-budget's. */
      readonly kind: 'no_slot';
      readonly message: string;
    }
  | {
      /**
       * The supervisor rejected the request permanently, before or after its review, or the options have an empty list;
       * no child exists.
       */
      readonly kind: 'failed';
      readonly stopReason: string;
      readonly message: string;
    }
);

/** The result of a handoff: a reply, or why there is none (AG-3). */
export type HandoffOutcome = Exclude<SpawnOutcome, { kind: 'spawned' }> | Reply;

/** The result of a proposal. */
export type ProposalOutcome = { readonly callId: string; readonly decision: Decision } & (
  | {
      /** The tool was executed. */
      readonly kind: 'executed';
      readonly result: ToolOutcome;
      readonly observation: JsonObject;
    }
  | {
      /** Refused by policy, by a human or by a limit. */
      readonly kind: 'refused';
      readonly stop: Stop;
    }
  | {
      /** Approved, but refused by the gateway or failed in the tool. */
      readonly kind: 'failed';
      readonly stop: Stop;
      readonly result: ToolOutcome;
    }
  | {
      /** The final answer was approved; the agent has ended. */
      readonly kind: 'finished';
    }
);

/** The state of an agent between two steps, from which it can resume (RT-1). */
export type Checkpoint = AgentCheckpoint<object, unknown>;

/** The latest checkpoint of an agent. */
export type Restored = RestoredAgent<unknown, unknown>;

/** A rate limit that several agents share (AG-9). */
export interface RateLimit {
  /** Which agents share it: those of the run, of this name, of the tenant, or with a model of this provider. */
  readonly scope: 'run' | 'agent' | 'tenant' | 'provider';
  /** What it counts; calls of different levels have separate limits. */
  readonly level: 'chat' | 'function';
  /** Maximum number of turns in any period of `perMs` milliseconds. */
  readonly calls: number;
  readonly perMs: number;
  /** Catalog alias, which selects the provider. */
  readonly model?: string;
}

/** The operations of an agent (RT-1). Each result is journaled once. */
export interface AgentContext {
  readonly manifest: AgentManifest;
  readonly meta: RunMeta;

  /**
   * Throws when the run is cancelled or past its deadline (SUP-5). Every new operation checks this, too; one whose
   * result is replayed from the journal may return it without a check.
   */
  check(): void;
  /** Returns the time, the same in every replay. */
  now(): Date;
  /** Returns a number in [0, 1), the same in every replay. */
  random(): number;
  /**
   * Writes a log line once, not in replays. The line may contain ids and constant text; content is
   * only journaled.
   */
  log(
    message: string,
    fields?: Readonly<Record<string, string | number | boolean>>,
    content?: JsonObject,
  ): void;

  /** Lists the tools of the agent's manifest from the gateway. */
  tools(): Promise<readonly ToolInfo[]>;
  /** Calls a model through the execution-meter; a failure is an outcome, not an error. */
  llm(request: LlmRequest): Promise<ModelAnswer>;
  /**
   * Reviews an action, waits for an approval if required, and executes the action under its writ.
   * The receipt and the result are attached to the next review.
   */
  propose(proposal: Proposal): Promise<ProposalOutcome>;
  /** Proposes a native tool call: review and execution under one call_id (SV-1, TG-1). */
  tool(tool: string, argumentsJson: string, modelCallId?: string): Promise<ProposalOutcome>;
  /**
   * Proposes the final answer. Approval ends the agent and, in the same transaction, notifies the
   * agent that waits for its reply (AG-3).
   */
  reply(
    answer: string,
    options?: Pick<Proposal, 'modelCallId' | 'composed'>,
  ): Promise<ProposalOutcome>;

  /**
   * Delegates to an agent in the manifest's sub_agents, after review; does not wait for its reply
   * (SUP-9).
   */
  spawn(agent: string, task: string, options?: SpawnOptions): Promise<SpawnOutcome>;
  /**
   * Waits for a child's reply and then ends the child, whatever the reply, so that its slot is
   * released.
   * @param timeoutMs default: that of the manifest; paused while the child is parked (SB-4)
   */
  ask(child: AgentRef, timeoutMs?: number): Promise<Reply>;
  /** Calls {@link spawn} and then {@link ask}. */
  handOff(agent: string, task: string, options?: SpawnOptions): Promise<HandoffOutcome>;

  /** Publishes an item to the subscribers of the manifest's output_topic (AG-5). */
  emit(topic: string, item: JsonObject): Promise<void>;
  /**
   * Subscribes to a topic of the manifest's follow_topics; items arrive as `new_feed_item` signals
   * (AG-5).
   */
  follow(topic: string, options?: FollowOptions): Promise<void>;
  /**
   * Suspends the agent until a signal of this name arrives, and returns the signal's payload. Uses
   * no memory meanwhile.
   */
  sleepUntilSignal(name: string): Promise<JsonObject>;
  /** Suspends the agent for a time in milliseconds. Uses no memory meanwhile. */
  sleep(ms: number): Promise<void>;
  /**
   * Acquires the next permit of a rate limit, which has a time, and suspends the agent until that time (AG-9).
   * Unrelated to the turns of a conversation.
   */
  turn(limit: RateLimit): Promise<void>;

  /**
   * Runs branches concurrently, each with its own context, and returns when all are done. Throws
   * the error of the first failed branch in their order. The agent is suspended once all remaining
   * branches wait.
   */
  all<T>(branches: readonly ((ctx: AgentContext) => Promise<T>)[]): Promise<T[]>;
  /**
   * Runs one think-act cycle and emits its start and its end. The end of a step commits nothing: its entries are
   * committed with the next required commit, or about 250 ms after the start of the next step.
   * @param waitsFor the signal that the step waits for first, which is shown to clients; empty for
   *   none
   */
  step<T>(step: number, work: () => Promise<T>, waitsFor?: string): Promise<T>;
  /** Emits once that a flow started or ended, with `ok` or a stop reason (HK-1). */
  flow(moment: 'started' | 'ended', status?: string): void;
  /** Emits once that a guardrail tripped (AG-6, HK-1). */
  trip(guardrail: Guardrail): void;

  /**
   * Returns the latest checkpoint and resumes from it; undefined when there is none. Operations
   * before this call are replayed each time, so there should be few. Call it once, outside
   * branches.
   */
  restore(): Promise<Restored | undefined>;
  /**
   * Makes this the point from which later replays start. Call it between two steps, outside
   * branches; it is committed with the previous step.
   */
  checkpoint(checkpoint: Checkpoint): void;

  /** Returns the turns that earlier runs of this agent stored in the session, oldest first (AG-8). */
  recall(): Promise<readonly ChatTurn[]>;
  /**
   * Sets the turns of this run that the session keeps, replacing those set before. They are stored
   * when the agent ends with an approved answer and the retention is PERMANENT (SUP-4, AG-8).
   * @param items number of items in its checkpoints that precede `turns`; these items must be turns
   */
  remember(turns: readonly ChatTurn[], items?: number): void;

  /**
   * Sets what the agent has so far: an agent whose manifest says `on_preempt: partial` ends with it
   * when it loses its slot (SB-4). `compose` returns an empty text while there is nothing.
   */
  draft(compose: () => string): void;

  /** Stops the agent. */
  stop(stop: Stop): never;
}
