import type { JsonObject } from '../json/json-value.ts';
import type { AgentRef } from '../runs/supervision.ts';
import type { AgentOperations, ToolAnswer } from './agent-function.ts';
import type { OptionsSchema } from './agent-options.ts';
import type { ChatTurn, LlmRequest, ModelAnswer } from './model-call.ts';

/** The operations of a middleware. Their results are journaled; a replay returns the same results (RT-1). */
export type MiddlewareOperations = Pick<
  AgentOperations,
  'check' | 'now' | 'random' | 'log' | 'sleep'
>;

/** The agent that a middleware wraps. */
export interface MiddlewareContext {
  readonly tenant: string;
  readonly runId: string;
  readonly sessionId: string;
  readonly agent: AgentRef;
  readonly operations: MiddlewareOperations;
}

/** A model call that a middleware wraps. */
export interface ChatMiddlewareContext extends MiddlewareContext {
  /** The first system message; empty without one. */
  readonly systemInstructions: string;
  readonly request: LlmRequest;
}

/** A tool call that a middleware wraps. */
export interface FunctionMiddlewareContext extends MiddlewareContext {
  readonly functionName: string;
  /** Arguments as JSON text; may be invalid JSON when a model wrote them. */
  readonly arguments: string;
}

/**
 * Middleware around an agent's run, a model call or a tool call (AG-9). It may act before and after `next`, pass a
 * changed context, return without `next`, or throw {@link MiddlewareTermination}. It runs again in replays, so it must
 * depend only on its context and on the operations of the context.
 */
export interface Middleware<C, R> {
  process(context: C, next: (context: C) => Promise<R>): Promise<R>;
}

/** Middleware around an agent's run. */
export type AgentMiddleware = Middleware<MiddlewareContext, void>;
/** Middleware around a model call. */
export type ChatMiddleware = Middleware<ChatMiddlewareContext, ModelAnswer>;
/** Middleware around a tool call. */
export type FunctionMiddleware = Middleware<FunctionMiddlewareContext, ToolAnswer>;

/** A middleware that a module defines, on one or more of the levels agent, chat and function (AG-9). */
export interface MiddlewareDefinition {
  /** Name in the manifest: a-z, 0-9, `_` and `-`; not that of a built-in middleware. */
  readonly name: string;
  /** Default: no options. */
  readonly options?: OptionsSchema;
  /** Creates the middleware around the agent's run from its valid options, each time the agent code starts. */
  agent?(options: JsonObject): AgentMiddleware;
  /**
   * Creates the middleware around model calls. The methods `chat` and `function` are called for each branch of an agent
   * and after each checkpoint.
   */
  chat?(options: JsonObject): ChatMiddleware;
  function?(options: JsonObject): FunctionMiddleware;
}

/**
 * Defines a middleware; checks the type only. A module of agents exports its definitions as `middleware`.
 *
 * @example
 * ```ts
 * import { defineMiddleware, MiddlewareTermination } from '@writ/sdk';
 *
 * export const middleware = [
 *   defineMiddleware({
 *     name: 'office_hours',
 *     options: { properties: { until: { type: 'integer', default: 18 } } },
 *     chat: ({ until }) => ({
 *       async process(context, next) {
 *         const hour = context.operations.now().getUTCHours();
 *         if (hour < Number(until)) return await next(context);
 *         throw new MiddlewareTermination('out_of_hours', `Models answer until ${String(until)} UTC.`);
 *       },
 *     }),
 *   }),
 * ];
 * ```
 */
export function defineMiddleware(definition: MiddlewareDefinition): MiddlewareDefinition {
  return definition;
}

/**
 * Thrown by a middleware to stop the agent (AG-9): outer middleware does not continue, and the
 * guardrail `middleware` trips (AG-6). {@link defineMiddleware} has an example.
 */
export class MiddlewareTermination extends Error {
  override readonly name = 'MiddlewareTermination';
  /** The stop reason is `error:<reason>`. */
  readonly reason: string;

  /**
   * @param reason a-z, 0-9 and _
   * @param sentence one sentence for the operator, without prompts, answers or other content
   */
  constructor(reason: string, sentence: string) {
    super(sentence);
    this.reason = reason;
  }
}

/** The context that is passed to a context strategy. */
export interface StrategyContext {
  /** Token budget of the view (`context_window`); 0 is unlimited. */
  readonly contextWindow: number;
  /** Estimates the tokens of turns. */
  countTokens(turns: readonly ChatTurn[]): number;
  /**
   * Calls the model of the agent, for example for a summary. Returns undefined when the call fails or the answer is
   * empty.
   */
  ask(instructions: string, text: string): Promise<string | undefined>;
}

/** Selects or shortens the turns that are sent to the model; the stored conversation does not change (AG-8). */
export interface ContextStrategy {
  /**
   * Returns the turns for the next model call. A turn with tool results must follow the turn that
   * requested them. `compact` runs again in replays, so it must depend only on its arguments.
   */
  compact(
    turns: readonly ChatTurn[],
    context: StrategyContext,
  ): readonly ChatTurn[] | Promise<readonly ChatTurn[]>;
}

/** A context strategy of a module (AG-8). */
export interface StrategyDefinition {
  /** Name in the manifest: a-z, 0-9, `_` and `-`; not that of a built-in strategy. */
  readonly name: string;
  /** Default: no options. */
  readonly options?: OptionsSchema;
  create(options: JsonObject): ContextStrategy;
}

/**
 * Defines a context strategy; checks the type only. A module of agents exports its definitions as `strategies`.
 *
 * @example
 * ```ts
 * import { defineStrategy } from '@writ/sdk';
 *
 * export const strategies = [
 *   defineStrategy({
 *     name: 'without_hidden',
 *     create: () => ({
 *       compact: (turns) => turns.filter((turn) => turn.role !== 'user' || turn.hidden === undefined),
 *     }),
 *   }),
 * ];
 * ```
 */
export function defineStrategy(definition: StrategyDefinition): StrategyDefinition {
  return definition;
}

/** Identifies the history of one agent in one session (SUP-2). */
export interface HistoryKey {
  readonly tenant: string;
  readonly sessionId: string;
  /** Name of the manifest. */
  readonly agent: string;
}

/** Stores the history of sessions outside of the worker (AG-8). Used with the retention PERMANENT only. */
export interface HistoryProvider {
  /** Returns the turns of earlier runs, oldest first; the result is journaled once per run. */
  load(session: HistoryKey): Promise<readonly ChatTurn[]>;
  /**
   * Appends the turns of a run that ended with an approved answer. After a crash, `save` may be called again with the
   * same `runId`, `instance` and turns; it must not append them again.
   */
  save(
    session: HistoryKey & { readonly runId: string; readonly instance: string },
    turns: readonly ChatTurn[],
  ): Promise<void>;
}

/** A history provider of a module (AG-8). */
export interface HistoryProviderDefinition {
  /** Name in the manifest: a-z, 0-9, `_` and `-`. */
  readonly name: string;
  /** Default: no options. */
  readonly options?: OptionsSchema;
  create(options: JsonObject): HistoryProvider;
}

/**
 * Defines a history provider; checks the type only. A module of agents exports its definitions as
 * `historyProviders`.
 *
 * @example
 * ```ts
 * import { type ChatTurn, defineHistoryProvider } from '@writ/sdk';
 *
 * const turnsOf = new Map<string, Map<string, readonly ChatTurn[]>>();
 *
 * export const historyProviders = [
 *   defineHistoryProvider({
 *     name: 'in_memory',
 *     create: () => ({
 *       load: async ({ tenant, sessionId, agent }) => [
 *         ...(turnsOf.get(`${tenant}/${sessionId}/${agent}`)?.values() ?? []),
 *       ].flat(),
 *       async save({ tenant, sessionId, agent, runId, instance }, turns) {
 *         const session = `${tenant}/${sessionId}/${agent}`;
 *         const runs = turnsOf.get(session) ?? new Map<string, readonly ChatTurn[]>();
 *         turnsOf.set(session, runs.set(`${runId}/${instance}`, turns));
 *       },
 *     }),
 *   }),
 * ];
 * ```
 */
export function defineHistoryProvider(
  definition: HistoryProviderDefinition,
): HistoryProviderDefinition {
  return definition;
}
