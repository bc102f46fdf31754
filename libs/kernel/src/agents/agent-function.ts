import type { JsonObject, JsonValue } from '../json/json-value.ts';
import type { PriorityName } from '../runs/priority.ts';
import type { AgentRef } from '../runs/supervision.ts';
import type { ModelAnswered, ModelCall, ModelReply } from './agent-model.ts';
import type { ChatTurn, ToolOffer } from './model-call.ts';

/** The request to an agent. */
export interface AgentTask {
  readonly goal: string;
  /** Structured payload of the request; empty by default. */
  readonly data: JsonObject;
}

/** One prompt to a model. */
export interface ModelQuestion {
  /** Instructions. Default: those of the manifest. */
  readonly instructions?: string;
  readonly text: string;
  /** Requests one JSON object as the response. Default: `json_mode` of the manifest. */
  readonly json?: boolean;
}

/** The result of a tool call. An agent can handle a rejected or failed call. */
export type ToolAnswer =
  | { readonly ok: true; readonly result: JsonObject }
  | {
      readonly ok: false;
      /** A stop reason such as `supervisor_block:…` or `tool_error:…`. */
      readonly error: string;
      /** One sentence. */
      readonly message: string;
    };

/** The result of a handoff to another agent (AG-3). */
export type HandoffAnswer =
  | {
      readonly ok: true;
      readonly text: string;
      /** Whether the agent was paused before it finished. */
      readonly partial: boolean;
    }
  | {
      readonly ok: false;
      /** `timed_out`, `target_failed`, `target_cancelled`, `no_slot`, or a stop reason. */
      readonly error: string;
      /** One sentence. */
      readonly message: string;
    };

/** Restrictions of a child by its parent; they only narrow what the manifest of the child allows (SUP-9). */
export interface SpawnOptions {
  /** Tools of the child: a non-empty subset of the tools in its manifest. Default: all of them. */
  readonly tools?: readonly string[];
  /**
   * Models of the child: a non-empty subset of the models that its manifest allows. The first model is the default
   * model of the child. Default: all of them.
   */
  readonly models?: readonly string[];
  /**
   * A lower priority for the child. Default: the priority in its manifest, or the priority in `sub_agents` if that is
   * lower.
   */
  readonly priority?: PriorityName;
}

/** Options of {@link AgentOperations.follow}. */
export interface FollowOptions {
  /**
   * Whether the subscription continues in the next run of the agent in its session. Unread items and items that arrive
   * between the runs are stored until that run follows the topic: at most 1,000 per agent; the oldest are dropped
   * first. The subscription ends when a run follows the topic without this option. Requires the retention PERMANENT.
   * Default: false.
   */
  readonly durable?: boolean;
}

/** The result of a spawn. */
export type SpawnAnswer =
  | { readonly ok: true; readonly child: AgentRef }
  | {
      readonly ok: false;
      /** `no_slot`, or a stop reason. */
      readonly error: string;
      /** One sentence. */
      readonly message: string;
    };

/** The result of a final answer that an agent proposed. */
export type ReplyAnswer =
  | { readonly ok: true }
  | {
      readonly ok: false;
      /** A stop reason such as `supervisor_block:…`. */
      readonly error: string;
      /** One sentence. */
      readonly message: string;
    };

/** The state of an agent between two steps. */
export interface AgentCheckpoint<State = JsonValue, Item = JsonValue> {
  /** The complete state except the items, as plain JSON. */
  readonly state: State;
  /** Items added since the previous checkpoint; stored once, separately from the state. */
  readonly added?: readonly Item[];
  /**
   * Index of the first item that the agent still needs; items are numbered from 0 across all checkpoints. Default 0.
   */
  readonly needsFrom?: number;
}

/** The latest checkpoint of an agent. */
export interface RestoredAgent<State = JsonValue, Item = JsonValue> {
  readonly state: State;
  /** The items from `needsFrom` on. */
  readonly items: readonly Item[];
}

/**
 * The operations of an agent that is written in TypeScript (RT-1). Every result is journaled: after a crash
 * or suspension the function is replayed from its start with the same results. The code between operations
 * must be deterministic: no clock, no random numbers, no I/O.
 */
export interface AgentOperations {
  readonly tenant: string;
  readonly runId: string;
  readonly agent: AgentRef;
  /** Options of the agent's manifest. */
  readonly options: JsonObject;

  /** Throws when the run was cancelled or its deadline has passed, as every operation does. */
  check(): void;
  /** The current time; the same in a replay. */
  now(): Date;
  /** A random number in [0, 1); the same in a replay. */
  random(): number;
  /**
   * Writes an entry to the log of the run. A replay does not write it again. `message` is constant text and `fields`
   * are ids: both are also written to the worker's log. `content` is only journaled; `ListLogEntries` returns it.
   */
  log(
    message: string,
    fields?: Readonly<Record<string, string | number | boolean>>,
    content?: JsonObject,
  ): void;

  /** Calls the model with one prompt; a failure ends the agent with the stop reason of the meter. */
  prompt(question: ModelQuestion): Promise<string>;
  /** Calls the model with a conversation and tools; a failure is a result, not an error (EM-6). */
  llm(call: ModelCall): Promise<ModelReply>;
  /** The tools of the manifest, as the gateway describes them, for {@link ModelCall.tools}. */
  tools(): Promise<readonly ToolOffer[]>;
  /**
   * Proposes a call of a tool of the manifest. The supervisor reviews the call; the gateway executes it if it is
   * approved (SV-1, TG-1).
   */
  tool(name: string, args: JsonObject): Promise<ToolAnswer>;
  /**
   * Proposes the tool calls of a model's answer, one after the other, and returns their results as the next turn. A
   * rejected or failed call becomes an error result with the reason. Rejected calls count toward `max_refusals`. The
   * agent ends when this limit is exceeded; with `on_refusal: stop`, at the first rejected call; and always when a
   * limit, the budget or the deadline of the run stops a call, or when the outcome of a call is unknown (AG-10). The
   * calls after the one at which the agent ends are not proposed.
   */
  useTools(answer: ModelAnswered): Promise<ChatTurn>;

  /** Delegates work to one of the `sub_agents` of the manifest and waits for its result (AG-3). */
  handOff(agent: string, task: string): Promise<HandoffAnswer>;
  /**
   * Delegates work like {@link handOff}, but does not wait for the result; {@link ask} waits for it. A child that is
   * never passed to {@link ask} ends with its parent.
   */
  spawn(agent: string, task: string, options?: SpawnOptions): Promise<SpawnAnswer>;
  /**
   * Suspends the agent until the child replies or the timeout expires, and then ends the child, so that its slot is
   * released.
   * @param timeoutMs milliseconds. Default: `ask_timeout` of the manifest
   */
  ask(child: AgentRef, timeoutMs?: number): Promise<HandoffAnswer>;

  /**
   * Proposes the final answer. An approved answer ends the agent; after that, `run` should return nothing. A rejected
   * answer counts toward `max_refusals` (SV-1, AG-10).
   */
  reply(answer: string): Promise<ReplyAnswer>;

  /**
   * Returns the turns that earlier runs of this agent stored in the session, oldest first: the newest 1,000 turns, or
   * what the history provider of the agent returns (AG-8). Returns none if the retention of the run is not PERMANENT.
   */
  recall(): Promise<readonly ChatTurn[]>;
  /**
   * Sets the turns of this run to add to the history of the session. Each call replaces the turns of the previous call.
   * The turns are stored when the agent ends with an approved answer and its retention is PERMANENT (SUP-4, AG-8).
   */
  remember(turns: readonly ChatTurn[]): void;

  /**
   * Returns the latest checkpoint; undefined when there is none. Call it once, at the beginning, because the operations
   * before it are replayed each time (RT-1).
   */
  restore(): Promise<RestoredAgent | undefined>;
  /**
   * Saves a checkpoint, from which later replays start. Every checkpoint includes all turns of the latest
   * {@link remember} and the text of the latest {@link draft}. Call it after {@link restore}, between two steps, outside of branches (RT-1).
   */
  checkpoint(checkpoint: AgentCheckpoint): void;

  /** Publishes an item on the `output_topic` of the manifest (AG-5). */
  emit(item: JsonObject): Promise<void>;
  /**
   * Subscribes to one of the `follow_topics` of the manifest; items arrive as signals `new_feed_item` (AG-5).
   * @example
   * ```ts
   * import { defineAgent } from '@writ/sdk';
   *
   * export const reader = defineAgent({
   *   name: 'price-reader',
   *   async run(operations) {
   *     await operations.follow('prices', { durable: true });
   *     const { item } = await operations.sleepUntilSignal('new_feed_item');
   *     return `New price: ${JSON.stringify(item)}`;
   *   },
   * });
   * ```
   */
  follow(topic: string, options?: FollowOptions): Promise<void>;
  /** Suspends the agent until a signal of this name arrives; returns its payload. A suspended agent uses no memory. */
  sleepUntilSignal(name: string): Promise<JsonObject>;
  /** Suspends the agent for `ms` milliseconds. A suspended agent uses no memory. */
  sleep(ms: number): Promise<void>;

  /** Runs branches concurrently; each must use the operations passed to it. */
  all<T>(branches: readonly ((operations: AgentOperations) => Promise<T>)[]): Promise<T[]>;
  /**
   * Runs one think-act cycle and emits STEP_START and STEP_END. The results of the cycle are committed with the next
   * required commit, not at the end of the cycle.
   * @param step number of the cycle, from 1
   * @param waitsFor name of the first signal that the cycle waits for; clients can read it
   */
  step<T>(step: number, work: () => Promise<T>, waitsFor?: string): Promise<T>;
  /**
   * Sets the partial result. It is proposed as the final answer with stop reason `paused` when the manifest has
   * `on_preempt: partial` and the agent loses its slot (SB-4). Each call replaces the previous partial result.
   */
  draft(text: string): void;
  /**
   * Ends the agent without an answer, with stop reason `error:<reason>`; an empty reason becomes
   * `error:invalid_reason`. The stop reason is cut to 512 characters, the detail to 16 KiB.
   */
  fail(reason: string, detail: string): never;
}

/** The definition of an agent written in TypeScript (AG-1). */
export interface AgentDefinition {
  /** Name of the agent's manifest, which must have the kind `custom`. */
  readonly name: string;
  /**
   * Version of the code, of a-z, 0-9, _ and -. Default: the empty version. An agent keeps the version with which it
   * started: to change code while agents run, export the new version before the old one, and remove the old one when no
   * agent uses it (RT-1). An agent waits until a worker has its version.
   */
  readonly version?: string;
  /** Runs the agent. Its return value, if any, is proposed as the final answer, which is reviewed (SV-1). */
  // biome-ignore lint/suspicious/noConfusingVoidType: an agent that replied returns nothing.
  run(operations: AgentOperations, task: AgentTask): Promise<string | void>;
}

/** The exports of a module of agents. If `agents` contains several versions of an agent, the first one is current. */
export interface AgentModule {
  readonly agents: readonly AgentDefinition[];
}

/**
 * Defines an agent; checks the type only. A module of agents exports its definitions as `agents`.
 *
 * @example
 * ```ts
 * import { defineAgent } from '@writ/sdk';
 *
 * const refund = defineAgent({
 *   name: 'refund-clerk',
 *   async run(operations, { goal }) {
 *     const order = await operations.tool('get_order', { goal });
 *     if (!order.ok) return `The order was not found: ${order.message}`;
 *     return await operations.prompt({ text: `Answer the customer: ${JSON.stringify(order.result)}` });
 *   },
 * });
 * export const agents = [refund];
 * ```
 */
export function defineAgent(definition: AgentDefinition): AgentDefinition {
  return definition;
}
