import type { JsonObject } from './json-value.ts';
import type { AgentRef } from './supervision.ts';

/** What an agent was asked to do. */
export interface AgentTask {
  readonly goal: string;
  /** Structured payload of the request; empty without one. */
  readonly data: JsonObject;
}

/** One question to a model. */
export interface ModelQuestion {
  /** Instructions; those of the manifest when left out. */
  readonly instructions?: string;
  readonly text: string;
  /** Ask for one JSON object. */
  readonly json?: boolean;
}

/** What came of a tool call. Whatever was refused, or failed, can be told and worked around. */
export type ToolAnswer =
  | { readonly ok: true; readonly result: JsonObject }
  | {
      readonly ok: false;
      /** A stop reason such as `supervisor_block:…` or `tool_error:…`. */
      readonly error: string;
      /** One sentence. */
      readonly message: string;
    };

/** What came of work that was handed to another agent (AG-3). */
export type HandoffAnswer =
  | {
      readonly ok: true;
      readonly text: string;
      /** The result of an agent that was paused before it was done. */
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
 * What an agent that is written in TypeScript can do (RT-1). Each result is journaled once: after a
 * crash or a wait the function runs again from its start and is given the same results. So between two
 * of these it may compute, but neither read a clock, nor draw a number, nor do I/O.
 */
export interface AgentOperations {
  readonly tenant: string;
  readonly runId: string;
  readonly agent: AgentRef;
  /** Options of the agent's manifest. */
  readonly options: JsonObject;

  /** Throws when the run was cancelled or is out of time; every operation does it, too. */
  check(): void;
  /** The time, the same whenever the agent runs again. */
  now(): Date;
  /** A number from 0 up to 1, the same whenever the agent runs again. */
  random(): number;
  /** Writes a log line once. Ids and words only; content goes to the journal alone. */
  log(
    message: string,
    fields?: Readonly<Record<string, string | number | boolean>>,
    content?: JsonObject,
  ): void;

  /** Asks the manifest's model; a failure ends the agent with the meter's stop reason. */
  ask(question: ModelQuestion): Promise<string>;
  /** Proposes a call of one of the manifest's tools: reviewed, then executed (SV-1, TG-1). */
  tool(name: string, args: JsonObject): Promise<ToolAnswer>;
  /** Hands work to one of the manifest's sub_agents and waits for what comes of it (AG-3). */
  handOff(agent: string, task: string): Promise<HandoffAnswer>;

  /** Tells everybody who follows the manifest's output_topic (AG-5). */
  emit(item: JsonObject): Promise<void>;
  /** Hears of one of the manifest's follow_topics from now on, as signals `new_feed_item` (AG-5). */
  follow(topic: string): Promise<void>;
  /** Sleeps until a signal of this name came, then answers its payload. Rows, no memory. */
  sleepUntilSignal(name: string): Promise<JsonObject>;
  /** Sleeps for a time, in milliseconds. Rows, no memory. */
  sleep(ms: number): Promise<void>;

  /** Runs branches side by side; each must use the operations that it is given. */
  all<T>(branches: readonly ((operations: AgentOperations) => Promise<T>)[]): Promise<T[]>;
  /**
   * Runs one think-act cycle, counted from 1: what it did is committed together.
   * @param waitsFor the signal that it begins with, for watchers
   */
  step<T>(step: number, work: () => Promise<T>, waitsFor?: string): Promise<T>;
  /** Ends the agent without an answer, with the stop reason `error:<reason>`. */
  fail(reason: string, detail: string): never;
}

/** An agent that is written in TypeScript (AG-1). */
export interface AgentDefinition {
  /** Manifest name of the agents that it runs; their kind is `custom`. */
  readonly name: string;
  /** Does the work; what it returns is proposed as the final answer, which is reviewed (SV-1). */
  run(operations: AgentOperations, task: AgentTask): Promise<string>;
}

/** What a module of agents must export. */
export interface AgentModule {
  readonly agents: readonly AgentDefinition[];
}

/** Defines an agent; only its type is checked. */
export function defineAgent(definition: AgentDefinition): AgentDefinition {
  return definition;
}
