import type { JsonSchema } from '@writ/config';
import { about } from '@writ/kernel';

/** Prices per million tokens in decimal USD, such as `"0.40"`. */
export interface PriceSettings {
  readonly input_per_million_usd?: string;
  readonly cached_input_per_million_usd?: string;
  readonly cache_write_per_million_usd?: string;
  readonly cache_write_1h_per_million_usd?: string;
  readonly output_per_million_usd?: string;
  readonly reasoning_per_million_usd?: string;
}

/** One alias in models.yaml; `base_url`, `model` and `timeout` can reference variables. */
export interface ModelSettings {
  /** Name of the template with its base settings. */
  readonly template?: string;
  readonly base_url?: string;
  readonly api?: 'openai' | 'anthropic';
  /** Name of the variable that contains the provider key. */
  readonly api_key_env?: string;
  readonly model?: string;
  readonly context_window?: number;
  readonly max_output_tokens?: number;
  /** A duration, such as `60s`. */
  readonly timeout?: string;
  readonly max_retries?: number;
  readonly max_in_flight?: number;
  readonly max_queued?: number;
  readonly streaming?: boolean;
  readonly output_cap_field?: 'max_tokens' | 'max_completion_tokens';
  /** Name of the model in the price list. */
  readonly priced_as?: string;
  readonly prices?: PriceSettings;
}

/** Caps of a tenant per day or month. */
export interface CapSettings {
  readonly max_tokens?: number;
  readonly max_cost_usd?: string;
  readonly max_turns?: number;
}

/** Content of models.yaml. */
export interface CatalogSettings {
  readonly templates?: Readonly<Record<string, ModelSettings>>;
  readonly models: Readonly<Record<string, ModelSettings>>;
  readonly tenants?: Readonly<
    Record<string, { readonly day?: CapSettings; readonly month?: CapSettings }>
  >;
}

const text = { type: 'string', minLength: 1 };
const integer = (minimum: number, maximum: number) => ({ type: 'integer', minimum, maximum });
const count = integer(1, 1_000_000_000);
const usd = {
  type: 'string',
  pattern: '^\\d{1,6}(\\.\\d{1,9})?$',
  'x-expected': 'decimal USD in quotes, such as "0.40"',
};
const price = (tokens: string, otherwise: string) =>
  about(`Price of a million ${tokens} tokens.`, usd, { default: otherwise, unit: 'USD' });

const model = {
  type: 'object',
  additionalProperties: false,
  properties: {
    template: about('Template with the base settings of the alias.', text, { default: 'none' }),
    base_url: about(
      'Base URL of the provider, including the path up to, but without, /chat/completions, /responses or /messages.',
      text,
      { default: 'required, in the alias or its template' },
    ),
    api: about(
      'API of the provider: openai for chat completions and responses, anthropic for messages.',
      { enum: ['openai', 'anthropic'] },
      { default: 'anthropic for api.anthropic.com, else openai' },
    ),
    api_key_env: about(
      'Environment variable of execution-meter that contains the API key of the provider.',
      {
        type: 'string',
        pattern: '^[A-Za-z_][A-Za-z0-9_]*$',
        'x-expected': 'the name of a variable, such as OPENAI_API_KEY; never the key itself',
      },
      { default: 'no authentication' },
    ),
    model: about('Name of the model at the provider.', text, {
      default: 'required, in the alias or its template',
    }),
    context_window: about(
      'Context window: maximum size of prompt and answer together. ListModels returns it.',
      count,
      {
        default: 'unknown',
        unit: 'tokens',
      },
    ),
    max_output_tokens: about('Default and maximum of the output of one call.', count, {
      default: '4096',
      unit: 'tokens',
    }),
    timeout: about('Timeout of one attempt.', text, { default: '60s' }),
    max_retries: about('Maximum number of retries after a recoverable failure.', integer(0, 10), {
      default: '2',
      unit: 'attempts',
    }),
    max_in_flight: about(
      'Maximum number of concurrent calls across all replicas.',
      integer(1, 100_000),
      {
        default: 'unlimited',
        unit: 'calls',
      },
    ),
    max_queued: about(
      'Maximum number of calls that wait while max_in_flight is reached.',
      integer(0, 100_000),
      {
        default: '1000',
        unit: 'calls',
      },
    ),
    streaming: about(
      'Whether answers are streamed; set it to false for servers that do not support streaming.',
      { type: 'boolean' },
      { default: 'true' },
    ),
    output_cap_field: about(
      'Name of the request field that contains the output limit.',
      { enum: ['max_tokens', 'max_completion_tokens'] },
      { default: 'max_completion_tokens for api.openai.com, else max_tokens' },
    ),
    priced_as: about('Name of the model in the price list.', text, {
      default: 'the value of `model`',
    }),
    prices: about(
      'Prices that override the price list. If both the input and the output price are set, the price list is not used, and omitted prices default to those of input and output.',
      {
        type: 'object',
        additionalProperties: false,
        minProperties: 1,
        properties: {
          input_per_million_usd: price('input', 'that of the price list'),
          cached_input_per_million_usd: price(
            'cached input',
            'that of the price list, else of input',
          ),
          cache_write_per_million_usd: price(
            'cache write',
            'that of the price list, else of input',
          ),
          cache_write_1h_per_million_usd: price(
            'one-hour cache write',
            'that of the price list, else of cache write',
          ),
          output_per_million_usd: price('output', 'that of the price list'),
          reasoning_per_million_usd: price('reasoning', 'that of output'),
        },
      },
    ),
  },
};

const NONE = 'means that nothing may be spent; leave it out for unlimited';
const cap = (description: string, schema: object, unit: string) =>
  about(description, { ...schema, 'x-zero': NONE }, { default: 'unlimited', unit });
const caps = {
  type: 'object',
  additionalProperties: false,
  minProperties: 1,
  properties: {
    max_tokens: cap('Prompt and completion tokens.', integer(0, 1_000_000_000_000), 'tokens'),
    max_cost_usd: cap('Cost of model calls.', usd, 'USD'),
    max_turns: cap('Model round trips.', integer(0, 1_000_000_000), 'turns'),
  },
};

const { template: _, ...ownSettings } = model.properties;
/** The schema of a template; a template cannot refer to another template. */
const template = { ...model, properties: ownSettings };

/** JSON Schema of models.yaml. */
export const CATALOG_SCHEMA: JsonSchema = {
  type: 'object',
  additionalProperties: false,
  required: ['models'],
  properties: {
    templates: about(
      'Base settings by name, for aliases that share settings.',
      { type: 'object', additionalProperties: template },
      { default: 'none' },
    ),
    models: about('Models by alias.', {
      type: 'object',
      minProperties: 1,
      additionalProperties: model,
      propertyNames: { pattern: '^[a-zA-Z0-9._:/-]{1,128}$' },
    }),
    tenants: about(
      'Caps by tenant; `*` applies to tenants that are not named.',
      {
        type: 'object',
        propertyNames: { pattern: '^([a-z0-9_-]{1,64}|\\*)$' },
        additionalProperties: {
          type: 'object',
          additionalProperties: false,
          minProperties: 1,
          properties: {
            day: about('Caps for each UTC day.', caps, { default: 'unlimited' }),
            month: about('Caps for each UTC month.', caps, { default: 'unlimited' }),
          },
        },
      },
      { default: 'unlimited' },
    ),
  },
};
