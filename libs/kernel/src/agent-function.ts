import type { JsonObject } from './json-value.ts';
import type { AgentRef } from './supervision.ts';

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
   * Writes an entry to the log of the run, not repeated in a replay. `message` is constant text and `fields` are ids:
   * both are also written to the worker's log. `content` is only journaled; `ListLogEntries` returns it.
   */
  log(
    message: string,
    fields?: Readonly<Record<string, string | number | boolean>>,
    content?: JsonObject,
  ): void;

  /** Calls the model of the manifest; a failure ends the agent with the stop reason of the meter. */
  ask(question: ModelQuestion): Promise<string>;
  /** Proposes a call of a tool of the manifest, which is reviewed and then executed (SV-1, TG-1). */
  tool(name: string, args: JsonObject): Promise<ToolAnswer>;
  /** Delegates work to one of the `sub_agents` of the manifest and waits for its result (AG-3). */
  handOff(agent: string, task: string): Promise<HandoffAnswer>;

  /** Publishes an item on the `output_topic` of the manifest (AG-5). */
  emit(item: JsonObject): Promise<void>;
  /** Subscribes to one of the `follow_topics` of the manifest; items arrive as signals `new_feed_item` (AG-5). */
  follow(topic: string): Promise<void>;
  /** Suspends the agent until a signal of this name arrives; returns its payload. Uses no memory meanwhile. */
  sleepUntilSignal(name: string): Promise<JsonObject>;
  /** Suspends the agent for `ms` milliseconds. Uses no memory meanwhile. */
  sleep(ms: number): Promise<void>;

  /** Runs branches concurrently; each must use the operations passed to it. */
  all<T>(branches: readonly ((operations: AgentOperations) => Promise<T>)[]): Promise<T[]>;
  /**
   * Runs one think-act cycle and commits its results together.
   * @param step number of the cycle, from 1
   * @param waitsFor the signal that the cycle starts with, for watchers
   */
  step<T>(step: number, work: () => Promise<T>, waitsFor?: string): Promise<T>;
  /**
   * Sets the partial result: when the manifest says `on_preempt: partial` and the agent loses its slot, it is
   * proposed as the final answer with stop reason `paused` (SB-4). Call it again when there is more.
   */
  draft(text: string): void;
  /** Ends the agent without an answer, with stop reason `error:<reason>`. */
  fail(reason: string, detail: string): never;
}

/** The definition of an agent written in TypeScript (AG-1). */
export interface AgentDefinition {
  /** Name of the manifest, whose kind is `custom`. */
  readonly name: string;
  /** Runs the agent. Its return value is proposed as the final answer, which is reviewed (SV-1). */
  run(operations: AgentOperations, task: AgentTask): Promise<string>;
}

/** The exports of a module of agents. */
export interface AgentModule {
  readonly agents: readonly AgentDefinition[];
}

/**
 * Defines an agent; checks the type only. A module of agents exports its definitions as `agents`.
 *
 * @example
 * ```ts
 * import { defineAgent } from '@writ/kernel';
 *
 * const refund = defineAgent({
 *   name: 'refund-clerk',
 *   async run(operations, { goal }) {
 *     const order = await operations.tool('get_order', { goal });
 *     if (!order.ok) return `The order was not found: ${order.message}`;
 *     return await operations.ask({ text: `Answer the customer: ${JSON.stringify(order.result)}` });
 *   },
 * });
 * export const agents = [refund];
 * ```
 */
export function defineAgent(definition: AgentDefinition): AgentDefinition {
  return definition;
}
