import { canonicalDigest, MIDDLEWARE_OPTIONS } from '@writ/kernel';
import type { ModelAnswer, ProposalOutcome } from '../../../runtime/agent.ts';
import { optionsReader } from '../../options.ts';
import type { ChatContext, CreateMiddleware, FunctionContext, Middleware } from '../middleware.ts';

const readChat = optionsReader<{ max_entries: number }>('cache', MIDDLEWARE_OPTIONS.chat.cache);

/**
 * Caches answers to identical model calls. Each branch has its own cache, which is cleared at checkpoints; failures are
 * not cached.
 */
export const cacheChat: CreateMiddleware<ChatContext, ModelAnswer> = (options) =>
  cacheResults(readChat(options).max_entries, {
    keyOf: ({ request }) => canonicalDigest(request),
    isKept: (answer) => answer.kind === 'answer',
  });

const readFunction = optionsReader<{ max_entries: number; tools: string[] }>(
  'cache',
  MIDDLEWARE_OPTIONS.function.cache,
);

/**
 * Caches the results of identical calls of the tools in `tools`. Each branch has its own cache, which is cleared at
 * checkpoints; only successful results are cached.
 */
export const cacheFunction: CreateMiddleware<FunctionContext, ProposalOutcome> = (options) => {
  const { max_entries: size, tools } = readFunction(options);
  return cacheResults(size, {
    keyOf: (context) =>
      tools.includes(context.functionName)
        ? canonicalDigest([context.functionName, context.arguments])
        : undefined,
    isKept: (outcome) => outcome.kind === 'executed',
  });
};

interface CacheRules<C, R> {
  /** Undefined for calls that are not cached. */
  readonly keyOf: (context: C) => string | undefined;
  readonly isKept: (result: R) => boolean;
}

function cacheResults<C, R>(size: number, { keyOf, isKept }: CacheRules<C, R>): Middleware<C, R> {
  const results = new Map<string, R>();
  return {
    process: async (context, next) => {
      const key = keyOf(context);
      if (key === undefined) return await next(context);
      const cached = results.get(key);
      if (cached !== undefined) return cached;
      const result = await next(context);
      if (isKept(result)) results.set(key, result);
      const [oldest] = results.keys();
      if (results.size > size && oldest !== undefined) results.delete(oldest);
      return result;
    },
  };
}
