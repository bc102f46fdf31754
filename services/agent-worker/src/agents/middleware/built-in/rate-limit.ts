import { optionsReader } from '../../options.ts';
import type { AgentRunContext, CreateMiddleware } from '../middleware.ts';

const readOptions = optionsReader<{ calls: number; per_ms: number }>(
  'rate_limit',
  {
    calls: { type: 'integer', minimum: 1, maximum: 10_000 },
    per_ms: { type: 'integer', minimum: 1, maximum: 86_400_000 },
  },
  ['calls', 'per_ms'],
);

/**
 * Allows at most `calls` calls per `per_ms` milliseconds; further calls sleep until they are
 * allowed.
 */
export function rateLimit<C extends AgentRunContext, R>(): CreateMiddleware<C, R> {
  return (options) => {
    const { calls, per_ms: perMs } = readOptions(options);
    const times: number[] = [];
    return {
      process: async (context, next) => {
        const { ctx } = context;
        const oldest = times.length < calls ? undefined : times.shift();
        const wait = oldest === undefined ? 0 : oldest + perMs - ctx.now().getTime();
        if (wait > 0) await ctx.sleep(wait);
        times.push(ctx.now().getTime());
        return await next(context);
      },
    };
  };
}
