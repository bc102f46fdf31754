import type { JsonSchema } from '@writ/config';

const text = { type: 'string' };
const count = { type: 'integer', minimum: 0 };
const positive = { type: 'integer', minimum: 1 };
const texts = {
  anyOf: [
    { title: 'text', type: 'string', minLength: 1 },
    { title: 'a list of strings', type: 'array', minItems: 1, items: { type: 'string' } },
  ],
};

function strict(properties: Record<string, unknown>, required: readonly string[] = []): JsonSchema {
  return { type: 'object', additionalProperties: false, required, properties };
}

const WHEN = strict({
  model: text,
  system_contains: texts,
  user_contains: texts,
  last_role: { enum: ['system', 'user', 'assistant', 'tool'] },
  turn: count,
  has_tool_result: { type: 'boolean' },
  tool_result_contains: texts,
  json_path: { type: 'object', minProperties: 1 },
  json_has: { type: 'array', minItems: 1, items: text },
});

const REPLY = strict({
  json: true,
  text,
  tool_calls: {
    type: 'array',
    minItems: 1,
    items: strict({ name: text, arguments: { type: ['object', 'string'] }, id: text }, ['name']),
  },
  error: strict(
    {
      status: { type: 'integer', minimum: 400, maximum: 599 },
      message: text,
      code: text,
      retry_after: { type: 'number', minimum: 0 },
    },
    ['status', 'message'],
  ),
  garbage: text,
  usage: strict({
    prompt_tokens: count,
    completion_tokens: count,
    cached_tokens: count,
    reasoning_tokens: count,
  }),
  finish_reason: { enum: ['stop', 'length', 'tool_calls', 'content_filter'] },
  delay_ms: count,
  chunk_delay_ms: count,
  chunk_size: positive,
  cut_after_chunks: count,
  omit: { type: 'array', items: { enum: ['usage', 'finish_reason', 'done'] } },
});

/** JSON Schema of a script file. */
export const SCRIPT_SCHEMA: JsonSchema = strict(
  {
    name: {
      type: 'string',
      pattern: '^[a-z0-9][a-z0-9_-]{0,63}$',
      'x-expected': 'a name of a-z, 0-9, underscore and hyphen',
    },
    description: text,
    expect: strict({ status: { enum: ['ok', 'partial', 'stopped'] }, stop_reason: text }, [
      'status',
      'stop_reason',
    ]),
    person: strict(
      {
        decision: { enum: ['approve', 'approve_edited', 'reject'] },
        arguments: { type: 'object' },
      },
      ['decision'],
    ),
    agent: { type: 'string' },
    values: { type: 'object', additionalProperties: text },
    entries: {
      type: 'array',
      minItems: 1,
      items: strict({ when: WHEN, times: positive, reply: REPLY }, ['reply']),
    },
  },
  ['name', 'entries'],
);
