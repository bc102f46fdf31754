import { InvalidRequestError } from '@writ/kernel';
import type { MiddlewareSetting } from '../../domain/agent/manifest.ts';
import type { AgentFactory } from '../../runtime/agent.ts';
import type { CreateMiddleware, Middleware, MiddlewareRegistry } from './middleware.ts';
import { compose } from './middleware.ts';
import { MiddlewareContext, orTerminate, runContextOf } from './middleware-context.ts';

/**
 * A factory whose agents run inside the middleware of their manifest, in its order (AG-9).
 * The agents' factory throws InvalidRequestError UNKNOWN_MIDDLEWARE or INVALID_MIDDLEWARE_OPTIONS.
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
    // What is wrong with the settings shows before the first operation.
    createLayers();
    return {
      id: agent.id,
      kind: agent.kind,
      run: async (ctx, inbox) => {
        const run = compose(around, () =>
          agent.run(new MiddlewareContext(ctx, createLayers), inbox),
        );
        await orTerminate(ctx, () => run(runContextOf(ctx)));
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
        `${field} names ${name}, which this worker has not; it has ${Object.keys(known).join(', ')}.`,
        { field },
      );
    return createOne(options);
  });
}
