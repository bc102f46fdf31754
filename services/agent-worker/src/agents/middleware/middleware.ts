import type { JsonObject } from '@writ/kernel';
import type { LlmRequest } from '../../domain/calls/model-call.ts';
import type { AgentContext, ModelAnswer, ProposalOutcome } from '../../runtime/agent.ts';

/** What every middleware is shown. */
export interface AgentRunContext {
  readonly agentName: string;
  readonly runId: string;
  readonly sessionId: string;
  /** The operations below this middleware; what it does by them is journaled. */
  readonly ctx: AgentContext;
}

/** What middleware around a model call is shown. */
export interface ChatContext extends AgentRunContext {
  readonly systemInstructions: string;
  readonly request: LlmRequest;
}

/** What middleware around a tool call is shown. */
export interface FunctionContext extends AgentRunContext {
  readonly functionName: string;
  /** Arguments as JSON text; what the model wrote may be no JSON at all. */
  readonly arguments: string;
  /** The model call that asked for it. */
  readonly modelCallId: string | undefined;
}

/**
 * One layer around an agent's run, a model call or a tool call (AG-9). It may act before and after
 * `next`, hand on a changed context, answer without `next`, or throw {@link MiddlewareTermination}. It
 * runs again on replay like the agent itself: it decides by its context and by journaled operations only.
 */
export interface Middleware<C, R> {
  process(context: C, next: (context: C) => Promise<R>): Promise<R>;
}

/** Makes a middleware from its options in the manifest; each branch of an agent has one of its own. */
export type CreateMiddleware<C, R> = (options: JsonObject) => Middleware<C, R>;

/** Middleware by the name that manifests use, on the three levels (AG-9). */
export interface MiddlewareRegistry {
  readonly agent: Readonly<Record<string, CreateMiddleware<AgentRunContext, void>>>;
  readonly chat: Readonly<Record<string, CreateMiddleware<ChatContext, ModelAnswer>>>;
  readonly function: Readonly<Record<string, CreateMiddleware<FunctionContext, ProposalOutcome>>>;
}

/** Thrown by a middleware to end the agent: no layer outside it acts any more (AG-9). */
export class MiddlewareTermination extends Error {
  /** @param reason for the stop_reason `error:<reason>`: a-z, 0-9 and _ */
  readonly reason: string;

  constructor(reason: string, sentence: string) {
    super(sentence);
    this.name = 'MiddlewareTermination';
    this.reason = reason;
  }
}

/** Puts middleware around `core`, the first one outermost (AG-9). */
export function compose<C, R>(
  layers: readonly Middleware<C, R>[],
  core: (context: C) => Promise<R>,
): (context: C) => Promise<R> {
  return layers.reduceRight<(context: C) => Promise<R>>(
    (next, layer) => (context) => layer.process(context, next),
    core,
  );
}
