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
   * Runs until the agent has ended, with an approved final answer or through {@link AgentContext.stop}.
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
  /** The model call that produced the proposal. */
  readonly modelCallId?: string;
  /** Whether the final answer was composed after the steps were used up. */
  readonly composed?: boolean;
};

/** Restrictions that a parent sets for a child (SUP-9). */
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
      /** The run's headcount has no free slot; `message` is the message of spawn-budget. */
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

/** The result of a handoff: a reply, or the reason why there is no reply (AG-3). */
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
  /**
   * The agents of the tenant that share the limit: the agents of the run, the agents with the same name, all agents, or
   * the agents that use a model of the same provider.
   */
  readonly scope: 'run' | 'agent' | 'tenant' | 'provider';
  /** The calls that the limit counts: model calls (`chat`) or tool calls (`function`), which have separate limits. */
  readonly level: 'chat' | 'function';
  /** Maximum number of calls in any period of `perMs` milliseconds. */
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
   * Throws when the agent may not continue: it was cancelled or is halted, its lease or slot is lost, the worker is
   * shutting down, or the deadline of the run has passed (SUP-5). Every new operation makes this check, too; an
   * operation that is replayed from the journal may return its recorded result without the check.
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
   * Proposes the final answer. If the answer is approved, the agent ends and, in the same transaction, sends its reply
   * to the agent that waits for it (AG-3).
   */
  reply(
    answer: string,
    options?: Pick<Proposal, 'modelCallId' | 'composed'>,
  ): Promise<ProposalOutcome>;

  /**
   * Whether the journal contains a proposal that this context, or a branch of it, has not requested yet. Depends on how
   * much of the journal is replayed: use it only to decide whether the agent stops here or first replays the proposal.
   */
  hasRecordedProposal(): boolean;

  /**
   * Delegates a task to an agent in the manifest's sub_agents, after review. Does not wait for the child's reply
   * (SUP-9).
   */
  spawn(agent: string, task: string, options?: SpawnOptions): Promise<SpawnOutcome>;
  /**
   * Waits for a child's reply and then ends the child, regardless of the reply, so that the slot of the child is
   * released.
   * @param timeoutMs default: the timeout of the sub-agent in the manifest, otherwise two minutes; paused while the
   *   child is parked (SB-4)
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
   * Suspends the agent until a signal of this name arrives, and returns the signal's payload. A suspended agent uses no
   * memory.
   */
  sleepUntilSignal(name: string): Promise<JsonObject>;
  /** Suspends the agent for a time in milliseconds. A suspended agent uses no memory. */
  sleep(ms: number): Promise<void>;
  /**
   * Acquires the next permit of a rate limit and suspends the agent until the permit is valid (AG-9). Unrelated to the
   * turns of a conversation.
   */
  turn(limit: RateLimit): Promise<void>;

  /**
   * Runs branches concurrently, each with its own context, and returns when all are done. If several branches fail,
   * throws the error of the first one in the order of `branches`. The agent is suspended once all remaining branches
   * wait.
   */
  all<T>(branches: readonly ((ctx: AgentContext) => Promise<T>)[]): Promise<T[]>;
  /**
   * Runs one think-act cycle and emits events for its start and its end. The end of a step does not cause a commit: the
   * entries of the step are committed with the next required commit, or about 250 ms after the start of the next step.
   * @param waitsFor the signal that the step waits for first, which is shown to clients; may be empty
   */
  step<T>(step: number, work: () => Promise<T>, waitsFor?: string): Promise<T>;
  /** Emits the start or the end of a flow once; the status of an end is `ok` or a stop reason (HK-1). */
  flow(moment: 'started' | 'ended', status?: string): void;
  /** Emits a GUARDRAIL_TRIP event once (AG-6, HK-1). */
  trip(guardrail: Guardrail): void;

  /**
   * Returns the latest checkpoint and resumes from it; returns undefined when the agent has no checkpoint. Operations
   * before the call are replayed under each lease, so their number should be small. Call this method once, outside
   * branches.
   */
  restore(): Promise<Restored | undefined>;
  /**
   * Saves a checkpoint, from which later replays start. Call this method between two steps, outside branches; the
   * checkpoint is written with the next commit.
   */
  checkpoint(checkpoint: Checkpoint): void;

  /** Returns the turns that earlier runs of this agent stored in the session, oldest first (AG-8). */
  recall(): Promise<readonly ChatTurn[]>;
  /**
   * Sets the turns of this run that are kept in the session; replaces turns that were set earlier. They are stored
   * when the agent ends with an approved answer and the retention is PERMANENT (SUP-4, AG-8).
   * @param items number of items in the agent's checkpoints that precede `turns`; these items must be turns
   */
  remember(turns: readonly ChatTurn[], items?: number): void;

  /**
   * Sets the function that composes the partial answer. An agent with `on_preempt: partial` in its manifest ends with
   * this answer when it loses its slot (SB-4). `compose` returns an empty text while there is no partial answer.
   */
  draft(compose: () => string): void;

  /** Stops the agent. */
  stop(stop: Stop): never;
}
