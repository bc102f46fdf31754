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
    'Continuation of truncated answers, detection of repeated tool calls, and the warning of a nearly exhausted budget.',
    object({
      max_tokens_recoveries: about(
        'Continuations, by one agent in all, of answers that were cut at the output limit; 0 disables them.',
        { type: 'integer', minimum: 0 },
        { default: '2' },
      ),
      max_repeated_tool_steps: about(
        'Consecutive repeats of the same tool calls after which the agent is stuck; 3 means four equal steps.',
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
  context: about('How the prompt is kept small.', {
    ...object({
      context_window: about(
        'Size to which the prompt is reduced; with 0 the built-in strategies other than `truncate` keep the whole prompt.',
        { type: 'integer', minimum: 0 },
        { default: '0', unit: 'tokens' },
      ),
      strategy: about('How the prompt is reduced; built in or of a module.', ID, {
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
              name: about('Name of the strategy; built in or of a module.', ID),
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
    "Where the history of sessions is stored, instead of in the worker's database.",
    object(
      {
        provider: about('Name of a history provider of a module.', ID),
        options: about('Its options.', OPTIONS, { default: 'none' }),
      },
      ['provider'],
    ),
  ),
  middleware: about(
    'Middleware in order, outermost first.',
    object({
      agent: about('Around the run of the agent.', middleware('agent'), { default: 'none' }),
      chat: about('Around each model call.', middleware('chat'), { default: 'none' }),
      function: about('Around each tool call.', middleware('function'), { default: 'none' }),
    }),
  ),
};

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
  const item = object(
    {
      name: about('Name of the middleware; built in or of a module.', ID),
      options: about('Its options.', OPTIONS, { default: 'none' }),
    },
    ['name'],
  );
  const allOf = optionsBy('name', MIDDLEWARE_OPTIONS[level]);
  return { type: 'array', maxItems: 64, items: { ...item, allOf } };
}
