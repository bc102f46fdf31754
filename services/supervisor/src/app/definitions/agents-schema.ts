import {
  MIDDLEWARE_OPTIONS,
  type MiddlewareLevel,
  type OptionsSchema,
  STRATEGY_OPTIONS,
} from '@writ/kernel';
import { AGENT_KINDS } from '../../domain/manifest/agent-manifest.ts';

const ID = {
  type: 'string',
  pattern: '^[a-z0-9_-]{1,64}$',
  'x-expected': 'a name of a-z, 0-9, _ and -',
};
const TOOL = { type: 'string', pattern: '^[a-zA-Z0-9_-]{1,64}$', 'x-expected': 'a tool name' };
const ALIAS = {
  type: 'string',
  pattern: '^[a-zA-Z0-9._:/-]{1,128}$',
  'x-expected': 'a model alias of the catalog',
};
const ALIAS_PATTERN = {
  type: 'string',
  pattern: '^[a-zA-Z0-9._:/*-]{1,128}$',
  'x-expected': 'a model alias, in which * matches any characters',
};
const ZERO = 'means none at all; leave it out for unlimited';
const DURATION = {
  type: 'string',
  pattern: '^(\\d+(\\.\\d+)?(ms|s|m|h|d))+$',
  'x-expected': 'a duration with a unit, such as 30s or 1m30s',
  'x-zero': 'means no time at all; leave it out for unlimited',
};
/** Decimal USD; a string keeps every digit. */
const USD = {
  type: ['string', 'number'],
  pattern: '^\\d{1,7}(\\.\\d{1,9})?$',
  minimum: 0,
  'x-expected': 'decimal USD such as "1.00"',
  'x-zero': ZERO,
};
const PRIORITY = { enum: ['background', 'low', 'normal', 'high', 'critical'] };
const OPTIONS = { type: 'object' };

function count(minimum = 0) {
  return { type: 'integer', minimum, maximum: 1_000_000_000, 'x-zero': ZERO };
}

function object(properties: Record<string, unknown>, required: readonly string[] = []) {
  return { type: 'object', additionalProperties: false, properties, required };
}

/** Requires the options of `schemas` where the property `by` has their name. */
function optionsBy(by: string, schemas: Readonly<Record<string, OptionsSchema>>) {
  return Object.entries(schemas).map(([name, { properties, required = [] }]) => ({
    if: { type: 'object', properties: { [by]: { const: name } }, required: [by] },
    // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema.
    then: {
      properties: { options: object(properties, required) },
      ...(required.length > 0 && { required: ['options'] }),
    },
  }));
}

function middleware(level: MiddlewareLevel) {
  const item = object({ name: ID, options: OPTIONS }, ['name']);
  const allOf = optionsBy('name', MIDDLEWARE_OPTIONS[level]);
  return { type: 'array', maxItems: 64, items: { ...item, allOf } };
}

function names() {
  return { type: 'array', maxItems: 64, uniqueItems: true, items: ID };
}

/**
 * One agent of the file; every key has the name and the meaning of its field in writ.supervision.v1.AgentManifest.
 */
const AGENT = object(
  {
    name: ID,
    kind: { enum: AGENT_KINDS },
    description: { type: 'string', maxLength: 4096 },
    instructions: { type: 'string' },
    final_instructions: { type: 'string' },
    model: object(
      {
        model: ALIAS,
        also_allowed: { type: 'array', maxItems: 64, items: ALIAS_PATTERN },
        temperature: { type: 'number', minimum: 0, maximum: 2 },
        max_output_tokens: count(1),
        json_mode: { type: 'boolean' },
        timeout: DURATION,
      },
      ['model'],
    ),
    tools: { type: 'array', maxItems: 1024, uniqueItems: true, items: TOOL },
    limits: object({
      max_steps: count(),
      max_tool_calls: count(),
      max_iterations: count(),
      max_refusals: count(),
      max_retries: count(),
    }),
    budget: object({
      /** Seconds of active time, which excludes waiting for a person. */
      max_seconds: { type: 'number', minimum: 0, maximum: 31_536_000, 'x-zero': ZERO },
      max_tokens: count(),
      max_cost_usd: USD,
      max_turns: count(),
      /** Wall-clock time from the start of the run. */
      deadline: DURATION,
    }),
    session_budget: object({
      max_tokens: count(),
      max_cost_usd: USD,
      max_turns: count(),
    }),
    spawn: object({
      max_agents: count(1),
      allow_preempt: { type: 'boolean' },
      max_total_spawns: count(),
      max_depth: count(),
    }),
    priority: PRIORITY,
    retention: { enum: ['none', 'run', 'permanent'] },
    on_refusal: { enum: ['stop', 'tell_model'] },
    on_preempt: { enum: ['park', 'partial'] },
    approval_required_risk: { type: 'number', minimum: 0, maximum: 1 },
    sub_agents: {
      type: 'array',
      maxItems: 256,
      items: object(
        {
          name: ID,
          description: { type: 'string', maxLength: 4096 },
          ask_timeout: DURATION,
          priority: PRIORITY,
        },
        ['name'],
      ),
    },
    guardrails: object({
      max_tokens_recoveries: { type: 'integer', minimum: 0 },
      max_repeated_tool_steps: count(),
      reserve_tokens: { type: 'integer', minimum: 0 },
      reserve_cost_fraction: { type: 'number', minimum: 0, maximum: 1 },
    }),
    context: {
      ...object({
        /** Zero disables trimming. */
        context_window: { type: 'integer', minimum: 0 },
        strategy: ID,
        options: OPTIONS,
        /** A pipeline, instead of `strategy` and `options`. */
        strategies: {
          type: 'array',
          minItems: 1,
          maxItems: 16,
          items: {
            ...object({ name: ID, options: OPTIONS }, ['name']),
            allOf: optionsBy('name', STRATEGY_OPTIONS),
          },
        },
      }),
      allOf: optionsBy('strategy', STRATEGY_OPTIONS),
    },
    /** A provider of a module that stores the history of sessions. */
    history: object({ provider: ID, options: OPTIONS }, ['provider']),
    middleware: object({
      agent: middleware('agent'),
      chat: middleware('chat'),
      function: middleware('function'),
    }),
    initial_tool_choice: TOOL,
    output_topic: { type: 'string', maxLength: 256 },
    follow_topics: { type: 'array', maxItems: 256, items: { type: 'string', maxLength: 256 } },
    unreviewed_deltas: { type: 'boolean' },
    options: OPTIONS,
  },
  ['name', 'kind'],
);

/** JSON Schema 2020-12 of an agents file (AG-1). */
export const AGENTS_SCHEMA = object(
  {
    /** Names that the modules of the workers add to the built-in ones. */
    extensions: object({
      middleware: names(),
      strategies: names(),
      history_providers: names(),
    }),
    agents: { type: 'array', minItems: 1, maxItems: 1000, items: AGENT },
  },
  ['agents'],
);
