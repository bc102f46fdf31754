import type { JsonObject, Middleware } from '@writ/kernel';
import type { LlmRequest } from '../../domain/calls/model-call.ts';
import type { AgentContext, ModelAnswer, ProposalOutcome } from '../../runtime/agent.ts';

export { MiddlewareTermination } from '@writ/kernel';
export type { Middleware };

/** Context of every built-in middleware. */
export interface AgentRunContext {
  readonly agentName: string;
  readonly runId: string;
  readonly sessionId: string;
  /** The journaled operations of the agent. Calls through it bypass the chat and function middleware of the agent. */
  readonly ctx: AgentContext;
}

/** Context of middleware around a model call. */
export interface ChatContext extends AgentRunContext {
  readonly systemInstructions: string;
  readonly request: LlmRequest;
}

/** Context of middleware around a tool call. */
export interface FunctionContext extends AgentRunContext {
  readonly functionName: string;
  /** Arguments as JSON text; what the model wrote may not be valid JSON. */
  readonly arguments: string;
  /** The model call that requested it. */
  readonly modelCallId: string | undefined;
}

/**
 * Creates a middleware from its options in the manifest: for each branch of an agent, and after each checkpoint that
 * the agent saves or restores; at the level `agent`, for each lease. It is also called only to validate the options, at
 * each delivery and at the start of each lease, so it must have no side effects.
 */
export type CreateMiddleware<C, R> = (options: JsonObject) => Middleware<C, R>;

/** Middleware by name, on the three levels (AG-9). */
export interface MiddlewareRegistry {
  readonly agent: Readonly<Record<string, CreateMiddleware<AgentRunContext, void>>>;
  readonly chat: Readonly<Record<string, CreateMiddleware<ChatContext, ModelAnswer>>>;
  readonly function: Readonly<Record<string, CreateMiddleware<FunctionContext, ProposalOutcome>>>;
}

/** The levels of middleware. */
export const middlewareLevels = ['agent', 'chat', 'function'] as const;

/** Composes middleware around `core`; the first one is the outermost (AG-9). */
export function compose<C, R>(
  layers: readonly Middleware<C, R>[],
  core: (context: C) => Promise<R>,
): (context: C) => Promise<R> {
  return layers.reduceRight<(context: C) => Promise<R>>(
    (next, layer) => (context) => layer.process(context, next),
    core,
  );
}
