import { MIDDLEWARE_OPTIONS } from '@writ/kernel';
import type { ModelAnswer, ProposalOutcome } from '../../../runtime/agent.ts';
import { optionsReader } from '../../options.ts';
import type {
  AgentRunContext,
  ChatContext,
  CreateMiddleware,
  FunctionContext,
} from '../middleware.ts';

const readOptions = optionsReader('logging', MIDDLEWARE_OPTIONS.agent.logging);

/** Logs when the agent starts and returns; ids only. */
export const logRun: CreateMiddleware<AgentRunContext, void> = (options) => {
  readOptions(options);
  return {
    process: async (context, next) => {
      context.ctx.log('agent begins', { agent_name: context.agentName });
      await next(context);
      context.ctx.log('agent returned', { agent_name: context.agentName });
    },
  };
};

/** Logs each model call and its outcome; ids and sizes only. */
export const logChat: CreateMiddleware<ChatContext, ModelAnswer> = (options) => {
  readOptions(options);
  return {
    process: async (context, next) => {
      const answer = await next(context);
      const { model, messages } = context.request;
      const outcome = answer.kind === 'answer' ? answer.endReason : answer.stopReason;
      const fields = { call_id: answer.callId, model, turns: messages.length, outcome };
      context.ctx.log('model call', fields);
      return answer;
    },
  };
};

/** Logs each tool call and its outcome; ids only. */
export const logFunction: CreateMiddleware<FunctionContext, ProposalOutcome> = (options) => {
  readOptions(options);
  return {
    process: async (context, next) => {
      const outcome = await next(context);
      const fields = { call_id: outcome.callId, tool: context.functionName, outcome: outcome.kind };
      context.ctx.log('tool call', fields);
      return outcome;
    },
  };
};
