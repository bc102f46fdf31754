import { MIDDLEWARE_OPTIONS } from '@writ/kernel';
import type { ModelAnswer, ProposalOutcome, RateLimit } from '../../../runtime/agent.ts';
import { optionsReader } from '../../options.ts';
import type { ChatContext, CreateMiddleware, FunctionContext } from '../middleware.ts';

interface Options {
  readonly calls: number;
  readonly per_ms: number;
  readonly scope: RateLimit['scope'];
}

const readChat = optionsReader<Options>('rate_limit', MIDDLEWARE_OPTIONS.chat.rate_limit);

/**
 * Permits at most `calls` model requests of the agents in any `per_ms` milliseconds; before a further request, the
 * agent is suspended until the request is permitted. Continuations of a truncated answer are model calls, too, but do
 * not count toward this limit. All agents of the `scope` share the limit, on all workers and across restarts.
 */
export const limitChat: CreateMiddleware<ChatContext, ModelAnswer> = (options) => {
  const { calls, per_ms: perMs, scope } = readChat(options);
  return {
    process: async (context, next) => {
      const { model } = context.request;
      await context.ctx.turn({ scope, level: 'chat', calls, perMs, model });
      return await next(context);
    },
  };
};

const readFunction = optionsReader<Options>('rate_limit', MIDDLEWARE_OPTIONS.function.rate_limit);

/** Limits the tool calls of a scope like {@link limitChat}. */
export const limitFunction: CreateMiddleware<FunctionContext, ProposalOutcome> = (options) => {
  const { calls, per_ms: perMs, scope } = readFunction(options);
  return {
    process: async (context, next) => {
      await context.ctx.turn({ scope, level: 'function', calls, perMs });
      return await next(context);
    },
  };
};
