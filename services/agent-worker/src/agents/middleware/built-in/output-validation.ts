import { InvalidRequestError, type JsonObject } from '@writ/kernel';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import type { LlmRequest } from '../../../domain/calls/model-call.ts';
import type { ModelAnswer } from '../../../runtime/agent.ts';
import { optionsReader } from '../../options.ts';
import type { ChatContext, CreateMiddleware } from '../middleware.ts';

const readOptions = optionsReader<{ schema: JsonObject; max_retries: number }>(
  'output_validation',
  {
    schema: { type: 'object' },
    max_retries: { type: 'integer', minimum: 0, maximum: 10, default: 1 },
  },
  ['schema'],
);

/**
 * Validates answers without tool calls against a JSON Schema. The model gets the validation errors
 * of an invalid answer, up to `max_retries` times; then the call fails with `error:invalid_output`.
 */
export const validateOutput: CreateMiddleware<ChatContext, ModelAnswer> = (options) => {
  const { schema, max_retries: most } = readOptions(options);
  const problemIn = problemFinder(schema);
  return {
    process: async (context, next) => {
      let { request } = context;
      for (let retries = 0; ; retries += 1) {
        const answer = await next({ ...context, request });
        if (answer.kind !== 'answer' || answer.toolUses !== undefined) return answer;
        const problem = problemIn(answer.text);
        if (problem === undefined) return answer;
        if (retries >= most) return invalid(answer.callId, problem);
        request = withProblem(request, answer.text, problem);
      }
    },
  };
};

function invalid(callId: string, problem: string): ModelAnswer {
  return { kind: 'failed', stopReason: 'error:invalid_output', detail: problem, callId };
}

function withProblem(request: LlmRequest, text: string, problem: string): LlmRequest {
  return {
    ...request,
    messages: [
      ...request.messages,
      { role: 'assistant', text },
      {
        role: 'user',
        text: `That answer is not valid: ${problem} Answer again, with the JSON alone.`,
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
    let value: unknown;
    try {
      value = JSON.parse(text);
    } catch {
      return 'it is not JSON.';
    }
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
