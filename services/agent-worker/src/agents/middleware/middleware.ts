import type { JsonObject } from '@writ/kernel';
import type { LlmRequest } from '../../domain/calls/model-call.ts';
import type { AgentContext, ModelAnswer, ProposalOutcome } from '../../runtime/agent.ts';

/** Context of every middleware. */
export interface AgentRunContext {
  readonly agentName: string;
  readonly runId: string;
  readonly sessionId: string;
  /** The operations beneath this middleware; they are journaled. */
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
 * Middleware around an agent's run, a model call or a tool call (AG-9). It may act before and after
 * `next`, pass a changed context, return without `next`, or throw {@link MiddlewareTermination}. It
 * runs again in replays, so that it must depend only on its context and on journaled operations.
 */
export interface Middleware<C, R> {
  process(context: C, next: (context: C) => Promise<R>): Promise<R>;
}

/** Creates a middleware from its options in the manifest; each branch of an agent has its own. */
export type CreateMiddleware<C, R> = (options: JsonObject) => Middleware<C, R>;

/** Middleware by name, on the three levels (AG-9). */
export interface MiddlewareRegistry {
  readonly agent: Readonly<Record<string, CreateMiddleware<AgentRunContext, void>>>;
  readonly chat: Readonly<Record<string, CreateMiddleware<ChatContext, ModelAnswer>>>;
  readonly function: Readonly<Record<string, CreateMiddleware<FunctionContext, ProposalOutcome>>>;
}

/** Thrown by a middleware to stop the agent; outer middleware does not continue (AG-9). */
export class MiddlewareTermination extends Error {
  /** @param reason for the stop_reason `error:<reason>`: a-z, 0-9 and _ */
  readonly reason: string;

  constructor(reason: string, sentence: string) {
    super(sentence);
    this.name = 'MiddlewareTermination';
    this.reason = reason;
  }
}

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
