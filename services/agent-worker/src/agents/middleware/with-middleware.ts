import { InvalidRequestError } from '@writ/kernel';
import type { MiddlewareSetting } from '../../domain/agent/manifest.ts';
import type { LlmRequest } from '../../domain/calls/model-call.ts';
import type {
  AgentContext,
  AgentFactory,
  ModelAnswer,
  ProposalOutcome,
} from '../../runtime/agent.ts';
import {
  type ChatContext,
  type CreateMiddleware,
  compose,
  type FunctionContext,
  type Middleware,
  type MiddlewareRegistry,
  MiddlewareTermination,
} from './middleware.ts';

/**
 * Wraps a factory, so that its agents run inside the middleware of their manifest, in that order
 * (AG-9). The returned factory throws InvalidRequestError UNKNOWN_MIDDLEWARE or
 * INVALID_MIDDLEWARE_OPTIONS.
 */
export function withMiddleware(factory: AgentFactory, registry: MiddlewareRegistry): AgentFactory {
  return (manifest, instance) => {
    const agent = factory(manifest, instance);
    const { agentMiddleware, chatMiddleware, functionMiddleware } = manifest;
    const around = create(registry.agent, agentMiddleware, 'agent_middleware');
    const createLayers = () => ({
      chat: create(registry.chat, chatMiddleware, 'chat_middleware'),
      function: create(registry.function, functionMiddleware, 'function_middleware'),
    });
    // Validates the settings before the first operation.
    createLayers();
    return {
      id: agent.id,
      kind: agent.kind,
      run: async (ctx, inbox) => {
        const run = compose(around, () => agent.run(withLayers(ctx, createLayers), inbox));
        await stopOnTermination(ctx, () => run(runContextOf(ctx)));
      },
    };
  };
}

function create<C, R>(
  known: Readonly<Record<string, CreateMiddleware<C, R>>>,
  settings: readonly MiddlewareSetting[],
  field: string,
): readonly Middleware<C, R>[] {
  return settings.map(({ name, options }) => {
    const createOne = Object.hasOwn(known, name) ? known[name] : undefined;
    if (createOne === undefined)
      throw new InvalidRequestError(
        'UNKNOWN_MIDDLEWARE',
        `${field}: middleware "${name}" does not exist. Available middleware: ${Object.keys(known).join(', ')}.`,
        { field },
      );
    return createOne(options);
  });
}

/** The middleware around one branch of an agent. */
export interface Layers {
  readonly chat: readonly Middleware<ChatContext, ModelAnswer>[];
  readonly function: readonly Middleware<FunctionContext, ProposalOutcome>[];
}

/**
 * Returns a context whose model calls and tool calls go through middleware (AG-9); it delegates all other
 * operations to `inner`.
 * @param createLayers creates the middleware of one branch
 */
function withLayers(inner: AgentContext, createLayers: () => Layers): AgentContext {
  const composeLayers = () => {
    const layers = createLayers();
    return {
      chat: compose(layers.chat, ({ request }) => inner.llm(request)),
      function: compose(layers.function, (context) =>
        inner.tool(context.functionName, context.arguments, context.modelCallId),
      ),
    };
  };
  let layers = composeLayers();
  const overrides: Partial<AgentContext> = {
    async llm(request: LlmRequest) {
      const [first] = request.messages;
      const systemInstructions = first?.role === 'system' ? first.text : '';
      const context = { ...runContextOf(inner), systemInstructions, request };
      return await stopOnTermination(inner, () => layers.chat(context));
    },
    async tool(tool, argumentsJson, modelCallId) {
      const call = { functionName: tool, arguments: argumentsJson, modelCallId };
      const context = { ...runContextOf(inner), ...call };
      return await stopOnTermination(inner, () => layers.function(context));
    },
    async all(branches) {
      // With shared layers, their state would depend on which branch is faster.
      return await inner.all(
        branches.map((branch) => (ctx) => branch(withLayers(ctx, createLayers))),
      );
    },
    checkpoint(checkpoint) {
      inner.checkpoint(checkpoint);
      // An agent that resumes from this checkpoint starts with fresh layers, too.
      layers = composeLayers();
    },
  };
  return new Proxy(inner, {
    get: (target, name) => {
      if (Object.hasOwn(overrides, name)) return Reflect.get(overrides, name);
      const value: unknown = Reflect.get(target, name, target);
      // Methods of a context use private fields, so that they must run on the context itself.
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}

/** Returns the context of middleware at any level. */
function runContextOf(ctx: AgentContext) {
  const { runId, supervision } = ctx.meta;
  return { agentName: ctx.manifest.name, runId, sessionId: supervision?.sessionId ?? runId, ctx };
}

/** Runs `work` and stops the agent when a middleware throws {@link MiddlewareTermination}. */
async function stopOnTermination<R>(ctx: AgentContext, work: () => Promise<R>): Promise<R> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof MiddlewareTermination)) throw error;
    const { reason, message } = error;
    return ctx.stop({ stopReason: `error:${reason}`, phase: 'worker', detail: message });
  }
}
