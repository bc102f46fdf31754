import {
  about,
  MIDDLEWARE_OPTIONS,
  type MiddlewareLevel,
  type OptionsSchema,
  STRATEGY_OPTIONS,
} from '@writ/kernel';
import { count, ID, OPTIONS, object } from './schema-values.ts';

/** The keys of an agent that adapt its loop: guardrails, context, history and middleware. */
export const LOOP = {
  guardrails: about(
    'Settings for the continuation of truncated answers, the detection of repeated tool calls, and the warning about a nearly exhausted budget.',
    object({
      max_tokens_recoveries: about(
        'Maximum number of times that one agent continues an answer that was cut at the output limit; 0 disables continuation.',
        { type: 'integer', minimum: 0 },
        { default: '2' },
      ),
      max_repeated_tool_steps: about(
        'Number of consecutive repeats of the same tool calls after which the agent counts as stuck; 3 means four identical steps.',
        count(),
        { default: '3', unit: 'steps' },
      ),
      reserve_tokens: about(
        'Remaining tokens at which the budget counts as nearly exhausted.',
        { type: 'integer', minimum: 0 },
        { default: '512', unit: 'tokens' },
      ),
      reserve_cost_fraction: about(
        'Remaining share of the cost cap at which the budget counts as nearly exhausted; a higher value warns earlier.',
        { type: 'number', minimum: 0, maximum: 1 },
        { default: '0.1' },
      ),
    }),
  ),
  context: about('Reduction of the prompt to the context window.', {
    ...object({
      context_window: about(
        'Size to which the prompt is reduced; with 0 the built-in strategies other than `truncate` keep the whole prompt.',
        { type: 'integer', minimum: 0 },
        { default: '0', unit: 'tokens' },
      ),
      strategy: about('Strategy that reduces the prompt; built in or defined in a module.', ID, {
        default: 'sliding_window',
      }),
      options: about('Options of the strategy.', OPTIONS, { default: 'none' }),
      strategies: about('A pipeline of strategies, instead of `strategy` and `options`.', {
        type: 'array',
        minItems: 1,
        maxItems: 16,
        items: {
          ...object(
            {
              name: about('Name of a strategy that is built in or defined in a module.', ID),
              options: about('Its options.', OPTIONS, { default: 'none' }),
            },
            ['name'],
          ),
          allOf: optionsBy('name', STRATEGY_OPTIONS),
        },
      }),
    }),
    allOf: optionsBy('strategy', STRATEGY_OPTIONS),
  }),
  history: about(
    "Store for the history of sessions, instead of the worker's database.",
    object(
      {
        provider: about('Name of a history provider that is defined in a module.', ID),
        options: about('Its options.', OPTIONS, { default: 'none' }),
      },
      ['provider'],
    ),
  ),
  middleware: about(
    'Middleware in order, outermost first.',
    object({
      agent: about('Middleware around the run of the agent.', middleware('agent'), {
        default: 'none',
      }),
      chat: about('Middleware around each model call.', middleware('chat'), { default: 'none' }),
      function: about('Middleware around each tool call.', middleware('function'), {
        default: 'none',
      }),
    }),
  ),
};

/** Returns conditions that validate `options` with the schema whose name is the value of property `by`. */
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
  const item = object(
    {
      name: about('Name of middleware that is built in or defined in a module.', ID),
      options: about('Its options.', OPTIONS, { default: 'none' }),
    },
    ['name'],
  );
  const allOf = optionsBy('name', MIDDLEWARE_OPTIONS[level]);
  return { type: 'array', maxItems: 64, items: { ...item, allOf } };
}
