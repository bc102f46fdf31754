import {
  InvalidRequestError,
  isJsonObject,
  type JsonObject,
  parseJsonStrict,
  trimWhiteSpace,
} from '@writ/kernel';
import type { MiddlewareSetting } from '../../domain/agent/manifest.ts';
import type { LlmRequest } from '../../domain/calls/model-call.ts';
import type {
  AgentContext,
  AgentFactory,
  ModelAnswer,
  Proposal,
  ProposalOutcome,
} from '../../runtime/agent.ts';
import { overrideContext } from '../override-context.ts';
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
 * Wraps a factory, so that its agents run inside the middleware of their manifest, in the order of the manifest (AG-9).
 * The returned factory throws InvalidRequestError UNKNOWN_MIDDLEWARE or INVALID_MIDDLEWARE_OPTIONS.
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
  let layers = createLayers();
  const callThrough = (call: ToolCall, core: (call: ToolCall) => Promise<ProposalOutcome>) => {
    const around = compose<FunctionContext, ProposalOutcome>(layers.function, core);
    return stopOnTermination(inner, () => around({ ...runContextOf(inner), ...call }));
  };
  return overrideContext(inner, {
    async llm(request: LlmRequest) {
      const [first] = request.messages;
      const systemInstructions = first?.role === 'system' ? first.text : '';
      const context = { ...runContextOf(inner), systemInstructions, request };
      const around = compose(layers.chat, (given: ChatContext) => inner.llm(given.request));
      return await stopOnTermination(inner, () => around(context));
    },
    async tool(tool, argumentsJson, modelCallId) {
      return await callThrough(
        { functionName: tool, arguments: argumentsJson, modelCallId },
        (call) => inner.tool(call.functionName, call.arguments, call.modelCallId),
      );
    },
    async propose(proposal) {
      const call = toolCallIn(proposal);
      if (call === undefined) return await inner.propose(proposal);
      return await callThrough(call, async (given) => {
        // The model's own text is sent to the supervisor for review, unless a middleware has changed the call.
        const isSame =
          given.functionName === call.functionName && given.arguments === call.arguments;
        if (isSame) return await inner.propose(proposal);
        return await inner.tool(given.functionName, given.arguments, given.modelCallId);
      });
    },
    async all(branches) {
      // Each branch has separate middleware: the state of shared middleware would depend on which branch is faster.
      return await inner.all(
        branches.map((branch) => (ctx) => branch(withLayers(ctx, createLayers))),
      );
    },
    async restore() {
      const restored = await inner.restore();
      // Operations before the checkpoint are replayed at each resume; their state in the middleware must not affect the
      // operations after it.
      if (restored !== undefined) layers = createLayers();
      return restored;
    },
    checkpoint(checkpoint) {
      inner.checkpoint(checkpoint);
      // An agent that resumes from this checkpoint starts with fresh layers, too.
      layers = createLayers();
    },
  });
}

type ToolCall = Pick<FunctionContext, 'functionName' | 'arguments' | 'modelCallId'>;

/**
 * Returns the tool call in a proposal; undefined for any other action, and for text that is not an action, which the
 * supervisor rejects.
 */
function toolCallIn({ rawText, action, modelCallId }: Proposal): ToolCall | undefined {
  if (action !== undefined) {
    if (action.kind !== 'tool') return undefined;
    return { functionName: action.tool, arguments: action.argumentsJson, modelCallId };
  }
  const { kind, name, args } = objectIn(rawText);
  if (kind !== 'tool' || typeof name !== 'string') return undefined;
  return {
    functionName: trimWhiteSpace(name),
    arguments: JSON.stringify(args ?? {}),
    modelCallId,
  };
}

function objectIn(text: string): JsonObject {
  try {
    const value = parseJsonStrict(text);
    return isJsonObject(value) ? value : {};
  } catch {
    return {};
  }
}

/** Returns the context of middleware at any level. */
function runContextOf(ctx: AgentContext) {
  const { runId, supervision } = ctx.meta;
  return { agentName: ctx.manifest.name, runId, sessionId: supervision?.sessionId ?? runId, ctx };
}

/**
 * Runs `work`; when a middleware throws {@link MiddlewareTermination}, trips the guardrail `middleware`
 * and stops the agent (AG-6).
 */
async function stopOnTermination<R>(ctx: AgentContext, work: () => Promise<R>): Promise<R> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof MiddlewareTermination)) throw error;
    const { reason, message } = error;
    ctx.trip('middleware');
    return ctx.stop({ stopReason: `error:${reason}`, phase: 'worker', detail: message });
  }
}
