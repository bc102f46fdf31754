import { backoffMs, MIDDLEWARE_OPTIONS } from '@writ/kernel';
import type { ModelAnswer, ProposalOutcome } from '../../../runtime/agent.ts';
import { optionsReader } from '../../options.ts';
import type {
  AgentRunContext,
  ChatContext,
  CreateMiddleware,
  FunctionContext,
  Middleware,
} from '../middleware.ts';

interface Backoff {
  readonly max_retries: number;
  readonly base_ms: number;
}

const readChat = optionsReader<Backoff>('retry', MIDDLEWARE_OPTIONS.chat.retry);

/**
 * Retries a model call that failed with a timeout, an empty answer or a provider error, in addition
 * to the meter's own retries (EM-8). Each retry is a separate call on the tab.
 */
export const retryChat: CreateMiddleware<ChatContext, ModelAnswer> = (options) =>
  retry(readChat(options), (answer) => answer.kind === 'failed' && isTransient(answer.stopReason));

const readFunction = optionsReader<Backoff & { tools: string[] }>(
  'retry',
  MIDDLEWARE_OPTIONS.function.retry,
);

/**
 * Proposes a call of one of `tools` again when the tool failed; each retry is reviewed and counted
 * as a separate call.
 */
export const retryFunction: CreateMiddleware<FunctionContext, ProposalOutcome> = (options) => {
  const { tools, ...backoff } = readFunction(options);
  const again = retry<FunctionContext, ProposalOutcome>(
    backoff,
    (outcome) => outcome.kind === 'failed' && outcome.stop.stopReason.startsWith('tool_error:'),
  );
  return {
    process: (context, next) =>
      tools.includes(context.functionName) ? again.process(context, next) : next(context),
  };
};

function isTransient(stopReason: string): boolean {
  return (
    stopReason === 'llm_timeout' ||
    stopReason === 'llm_empty' ||
    stopReason.startsWith('provider_error:')
  );
}

/**
 * Returns middleware that repeats a call while `shallRetry` returns true, at most `max_retries` times, with exponential
 * back-off. The delays are durable sleeps and use the random numbers of the agent, so that a replay has the same
 * delays.
 */
function retry<C extends AgentRunContext, R>(
  { max_retries: maxRetries, base_ms: baseMs }: Backoff,
  shallRetry: (result: R) => boolean,
): Middleware<C, R> {
  return {
    process: async (context, next) => {
      let result = await next(context);
      for (let attempt = 1; attempt <= maxRetries && shallRetry(result); attempt += 1) {
        const { ctx } = context;
        const limits = { baseMs, maxMs: Number.POSITIVE_INFINITY };
        if (baseMs > 0) await ctx.sleep(backoffMs(attempt, limits, ctx.random()));
        result = await next(context);
      }
      return result;
    },
  };
}
