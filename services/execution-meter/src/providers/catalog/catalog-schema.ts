import type { JsonSchema } from '@writ/config';

/** Prices per million tokens in decimal USD, such as `"0.40"`. */
export interface PriceSettings {
  readonly input_per_million_usd?: string;
  readonly cached_input_per_million_usd?: string;
  readonly output_per_million_usd?: string;
  readonly reasoning_per_million_usd?: string;
}

/** One alias in models.yaml; strings can reference variables. */
export interface ModelSettings {
  /** Name of the template with its base settings. */
  readonly template?: string;
  readonly base_url?: string;
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
const count = { type: 'integer', minimum: 1, maximum: 1_000_000_000 };
const usd = {
  type: 'string',
  pattern: '^\\d{1,6}(\\.\\d{1,9})?$',
  'x-expected': 'decimal USD in quotes, such as "0.40"',
};

const model = {
  type: 'object',
  additionalProperties: false,
  properties: {
    template: text,
    base_url: text,
    api_key_env: {
      type: 'string',
      pattern: '^[A-Za-z_][A-Za-z0-9_]*$',
      'x-expected': 'the name of a variable, such as OPENAI_API_KEY; never the key itself',
    },
    model: text,
    context_window: count,
    max_output_tokens: count,
    timeout: text,
    max_retries: { type: 'integer', minimum: 0, maximum: 10 },
    max_in_flight: { ...count, maximum: 100_000 },
    max_queued: { type: 'integer', minimum: 0, maximum: 100_000 },
    streaming: { type: 'boolean' },
    output_cap_field: { enum: ['max_tokens', 'max_completion_tokens'] },
    priced_as: text,
    prices: {
      type: 'object',
      additionalProperties: false,
      minProperties: 1,
      properties: {
        input_per_million_usd: usd,
        cached_input_per_million_usd: usd,
        output_per_million_usd: usd,
        reasoning_per_million_usd: usd,
      },
    },
  },
};

const NONE = 'means that nothing may be spent; leave it out for unlimited';
const caps = {
  type: 'object',
  additionalProperties: false,
  minProperties: 1,
  properties: {
    max_tokens: { type: 'integer', minimum: 0, maximum: 1_000_000_000_000, 'x-zero': NONE },
    max_cost_usd: { ...usd, 'x-zero': NONE },
    max_turns: { type: 'integer', minimum: 0, maximum: 1_000_000_000, 'x-zero': NONE },
  },
};

/** JSON Schema of models.yaml. */
export const CATALOG_SCHEMA: JsonSchema = {
  type: 'object',
  additionalProperties: false,
  required: ['models'],
  properties: {
    templates: { type: 'object', additionalProperties: model },
    models: {
      type: 'object',
      minProperties: 1,
      additionalProperties: model,
      propertyNames: { pattern: '^[a-zA-Z0-9._:/-]{1,128}$' },
    },
    tenants: {
      type: 'object',
      propertyNames: { pattern: '^([a-z0-9_-]{1,64}|\\*)$' },
      additionalProperties: {
        type: 'object',
        additionalProperties: false,
        minProperties: 1,
        properties: { day: caps, month: caps },
      },
    },
  },
};
