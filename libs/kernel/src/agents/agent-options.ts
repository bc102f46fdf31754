import type { JsonObject } from '../json/json-value.ts';

/** The options of one middleware or strategy: the JSON Schema of each option, and the names of the required options. */
export interface OptionsSchema {
  readonly properties: Readonly<Record<string, JsonObject>>;
  readonly required?: readonly string[];
}

const NONE: OptionsSchema = { properties: {} };

const TOOLS = {
  description: 'Tools to which the middleware applies.',
  type: 'array',
  items: { type: 'string' },
  minItems: 1,
} as const satisfies JsonObject;

const ENTRIES = {
  max_entries: {
    description: 'Maximum number of cached results.',
    type: 'integer',
    minimum: 1,
    maximum: 10_000,
    default: 100,
  },
} as const satisfies Record<string, JsonObject>;

const BACKOFF = {
  max_retries: {
    description: 'Maximum number of retries after a failure.',
    type: 'integer',
    minimum: 1,
    maximum: 10,
    default: 2,
  },
  base_ms: {
    description:
      'Maximum random delay before the first retry, in milliseconds; the maximum doubles with each retry.',
    type: 'integer',
    minimum: 0,
    maximum: 600_000,
    default: 500,
  },
} as const satisfies Record<string, JsonObject>;

function rateLimit(...scopes: readonly string[]): OptionsSchema {
  return {
    properties: {
      calls: {
        description: 'Maximum number of calls within the interval.',
        type: 'integer',
        minimum: 1,
        maximum: 10_000,
      },
      per_ms: {
        description: 'The interval, in milliseconds.',
        type: 'integer',
        minimum: 1,
        maximum: 86_400_000,
      },
      scope: {
        description: 'Scope in which all calls share the limit.',
        enum: scopes,
        default: 'agent',
      },
    },
    required: ['calls', 'per_ms'],
  };
}

/** The kinds of text that the middleware `redaction` recognizes without a pattern. */
export const REDACTION_KINDS = ['email', 'card_number', 'phone'] as const;

const REDACTION: OptionsSchema = {
  properties: {
    kinds: {
      description: 'Built-in kinds of text to redact.',
      type: 'array',
      items: { enum: REDACTION_KINDS },
      default: REDACTION_KINDS,
    },
    patterns: {
      description: 'Regular expressions for additional text to redact.',
      type: 'array',
      items: { type: 'string', minLength: 1 },
      default: [],
    },
  },
};

/** The levels of middleware (AG-9). */
export type MiddlewareLevel = 'agent' | 'chat' | 'function';

/**
 * The built-in middleware by level and name, with its options (AG-9). The supervisor rejects other options when it
 * loads an agent; the worker applies the defaults.
 */
export const MIDDLEWARE_OPTIONS = {
  agent: { logging: NONE },
  chat: {
    cache: { properties: ENTRIES },
    logging: NONE,
    output_validation: {
      properties: {
        schema: { description: 'JSON Schema of the answer.', type: 'object' },
        max_retries: {
          description: 'Maximum number of retries after an invalid answer.',
          type: 'integer',
          minimum: 0,
          maximum: 10,
          default: 1,
        },
      },
      required: ['schema'],
    },
    rate_limit: rateLimit('run', 'agent', 'tenant', 'provider'),
    redaction: REDACTION,
    retry: { properties: BACKOFF },
  },
  function: {
    cache: { properties: { ...ENTRIES, tools: TOOLS }, required: ['tools'] },
    logging: NONE,
    rate_limit: rateLimit('run', 'agent', 'tenant'),
    redaction: REDACTION,
    retry: { properties: { ...BACKOFF, tools: TOOLS }, required: ['tools'] },
  },
} as const satisfies Record<MiddlewareLevel, Record<string, OptionsSchema>>;

const KEEP_LAST: OptionsSchema = {
  properties: {
    keep_last: {
      description:
        'Number of the most recent exchanges that are kept unchanged. `compact` keeps fewer exchanges if they do not fit, but always keeps the last one. An exchange is an assistant message with the results of its tool calls, or any other single message.',
      type: 'integer',
      minimum: 1,
      maximum: 1_000,
      default: 6,
    },
  },
};

/** The built-in context strategies by name, with their options (AG-8). */
export const STRATEGY_OPTIONS = {
  sliding_window: NONE,
  compact: KEEP_LAST,
  summary: KEEP_LAST,
  truncate: {
    properties: {
      max_characters: {
        description: 'Length at which a tool result is cut.',
        type: 'integer',
        minimum: 1,
        default: 8_000,
      },
    },
  },
} as const satisfies Record<string, OptionsSchema>;

/**
 * Returns the first strategy of a pipeline that must not precede `summary`, if any (AG-8). A summary replaces a number
 * of turns counted from the start of the conversation, so only `truncate`, which drops no turns, may come before it.
 */
export function strategyBeforeSummary(names: readonly string[]): string | undefined {
  const before = names.slice(0, Math.max(0, names.lastIndexOf('summary')));
  return before.find((name) => name !== 'truncate');
}
