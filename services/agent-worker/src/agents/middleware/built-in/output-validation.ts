import {
  type AgentKind,
  InvalidRequestError,
  isJsonObject,
  type JsonObject,
  type JsonValue,
  MIDDLEWARE_OPTIONS,
} from '@writ/kernel';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import type { LlmRequest } from '../../../domain/calls/model-call.ts';
import type { ModelAnswer } from '../../../runtime/agent.ts';
import { optionsReader } from '../../options.ts';
import { type ChatContext, type CreateMiddleware, MiddlewareTermination } from '../middleware.ts';

const readOptions = optionsReader<{ schema: JsonObject; max_retries: number }>(
  'output_validation',
  MIDDLEWARE_OPTIONS.chat.output_validation,
);

/**
 * Validates answers without tool calls, and the `answer` of final actions of json-action agents, against a JSON Schema;
 * does not validate summaries of a conversation. The model gets the validation errors of an invalid answer, up to
 * `max_retries` times; then the agent stops with `error:invalid_output`.
 */
export const validateOutput: CreateMiddleware<ChatContext, ModelAnswer> = (options) => {
  const { schema, max_retries: maxRetries } = readOptions(options);
  const problemIn = problemFinder(schema);
  return {
    process: async (context, next) => {
      let { request } = context;
      if (request.purpose === 'summary') return await next(context);
      for (let retries = 0; ; retries += 1) {
        const answer = await next({ ...context, request });
        if (answer.kind !== 'answer' || answer.toolUses !== undefined) return answer;
        const text = answerIn(answer.text, context.ctx.manifest.kind);
        const problem = text === undefined ? undefined : problemIn(text);
        if (problem === undefined) return answer;
        if (retries >= maxRetries) throw new MiddlewareTermination('invalid_output', problem);
        request = withProblem(request, answer.text, problem);
      }
    },
  };
};

/** Returns the answer in a model's text; undefined for a proposed tool call. */
function answerIn(text: string, kind: AgentKind): string | undefined {
  if (kind !== 'json-action') return text;
  const action = parsed(text);
  if (!isJsonObject(action)) return text;
  if (action.kind === 'tool') return undefined;
  return action.kind === 'final' && typeof action.answer === 'string' ? action.answer : text;
}

function parsed(text: string): JsonValue | undefined {
  try {
    return JSON.parse(text) as JsonValue;
  } catch {
    return undefined;
  }
}

function withProblem(request: LlmRequest, text: string, problem: string): LlmRequest {
  return {
    ...request,
    messages: [
      ...request.messages,
      { role: 'assistant', text },
      {
        role: 'user',
        text: `That answer is not valid: ${problem} Correct it, and answer again in the same form, without any other text.`,
        hidden: 'output_validation',
      },
    ],
  };
}

/** Returns a validator whose message names fields, but never their content. */
function problemFinder(schema: JsonObject): (text: string) => string | undefined {
  const ajv = new Ajv2020({ strict: false });
  const fits = compile(ajv, schema);
  return (text) => {
    const value = parsed(text);
    if (value === undefined) return 'it is not JSON.';
    return fits(value) ? undefined : `${ajv.errorsText(fits.errors, { dataVar: 'answer' })}.`;
  };
}

function compile(ajv: Ajv2020, schema: JsonObject): ValidateFunction {
  try {
    return ajv.compile(schema);
  } catch (error) {
    throw new InvalidRequestError(
      'INVALID_MIDDLEWARE_OPTIONS',
      `options of output_validation: schema is not a valid JSON Schema: ${String(error)}.`,
      { field: 'output_validation' },
    );
  }
}
