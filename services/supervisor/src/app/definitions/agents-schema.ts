import {
  about,
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

function names() {
  return { type: 'array', maxItems: 64, uniqueItems: true, items: ID };
}

/**
 * One agent of the file; every key has the name and the meaning of its field in writ.supervision.v1.AgentManifest.
 */
export const AGENT_SCHEMA = object(
  {
    name: about('Unique name; runs, policies and handoffs name the agent by it.', ID),
    kind: about('The loop that runs the agent.', { enum: AGENT_KINDS }),
    description: about(
      'What the agent is for; shown by ListAgents, and to the model of an orchestrator.',
      { type: 'string', maxLength: 4096 },
      { default: 'empty' },
    ),
    instructions: about('System prompt.', { type: 'string' }, { default: 'empty' }),
    final_instructions: about(
      'System prompt of the call that composes the answer of a json-action agent when its steps are used up.',
      { type: 'string' },
      { default: 'empty' },
    ),
    model: about(
      'The model and its settings; omitted by kinds that call none.',
      object(
        {
          model: about('Alias of the model catalog.', ALIAS),
          also_allowed: about(
            'Further aliases that a run may select.',
            { type: 'array', maxItems: 64, items: ALIAS_PATTERN },
            { default: 'none' },
          ),
          temperature: about(
            'Sampling temperature.',
            { type: 'number', minimum: 0, maximum: 2 },
            { default: '0' },
          ),
          max_output_tokens: about('Maximum output of one model call.', count(1), {
            default: 'that of the catalog',
            unit: 'tokens',
          }),
          json_mode: about(
            'Whether the provider must answer with one JSON object.',
            { type: 'boolean' },
            { default: 'true for json-action, else false' },
          ),
          timeout: about('Timeout of one model call.', DURATION, {
            default: 'that of the catalog',
          }),
        },
        ['model'],
      ),
    ),
    tools: about(
      'Tools that the agent may propose; no others are offered to its model.',
      { type: 'array', maxItems: 1024, uniqueItems: true, items: TOOL },
      { default: 'none' },
    ),
    limits: about(
      'Limits of the loop.',
      object({
        max_steps: about('Reviewed actions.', count(), {
          default: '8 for json-action, else unlimited',
          unit: 'steps',
        }),
        max_tool_calls: about(
          'Executed tool calls of the whole run, when the agent is its root.',
          count(),
          { default: '5 for json-action, else unlimited', unit: 'calls' },
        ),
        max_iterations: about(
          'Model turns without an answer, for react and orchestrator.',
          count(),
          { default: '10', unit: 'turns' },
        ),
        max_refusals: about(
          'Refused actions that are reported to the model before the run ends.',
          count(),
          { default: '3', unit: 'actions' },
        ),
        max_retries: about('Restarts after failures of the worker or of agent code.', count(), {
          default: '3',
          unit: 'restarts',
        }),
      }),
    ),
    budget: about(
      'What the agent, and as a root its run, may spend.',
      object({
        max_seconds: about(
          'Active time; waiting for a person and parked time do not count.',
          { type: 'number', minimum: 0, maximum: 31_536_000, 'x-zero': ZERO },
          { default: 'unlimited', unit: 's' },
        ),
        max_tokens: about('Prompt and completion tokens together.', count(), {
          default: 'unlimited',
          unit: 'tokens',
        }),
        max_cost_usd: about('Cost of model calls.', USD, { default: 'unlimited', unit: 'USD' }),
        max_turns: about('Model round trips.', count(), { default: 'unlimited', unit: 'turns' }),
        deadline: about('Wall-clock time from the start of the run.', DURATION, {
          default: 'unlimited',
        }),
      }),
    ),
    session_budget: about(
      'Caps of the whole session of a run that the agent is the root of; a later run can only lower them.',
      object({
        max_tokens: about('Prompt and completion tokens of all runs of the session.', count(), {
          default: 'unlimited',
          unit: 'tokens',
        }),
        max_cost_usd: about('Cost of model calls of all runs of the session.', USD, {
          default: 'unlimited',
          unit: 'USD',
        }),
        max_turns: about('Model round trips of all runs of the session.', count(), {
          default: 'unlimited',
          unit: 'turns',
        }),
      }),
    ),
    spawn: about(
      'Headcount of the run, when the agent is its root.',
      object({
        max_agents: about(
          'Agents that hold a slot at the same time, the root included.',
          count(1),
          { default: '50', unit: 'agents' },
        ),
        allow_preempt: about(
          'Whether HIGH and CRITICAL agents may pause agents of lower priority.',
          { type: 'boolean' },
          { default: 'true' },
        ),
        max_total_spawns: about('Agents spawned during the run, without the root.', count(), {
          default: 'unlimited',
          unit: 'agents',
        }),
        max_depth: about('Depth of an agent below the root.', count(), {
          default: 'unlimited',
          unit: 'levels',
        }),
      }),
    ),
    priority: about('Weight for slots and model calls.', PRIORITY, { default: 'normal' }),
    retention: about(
      'Whether conversation, journal and payloads are kept after the run.',
      { enum: ['none', 'run', 'permanent'] },
      { default: 'permanent; run for a child' },
    ),
    on_refusal: about(
      'What a refused action does: end the run, or tell the model.',
      { enum: ['stop', 'tell_model'] },
      { default: 'stop for json-action, else tell_model' },
    ),
    on_preempt: about(
      'What the agent does without its slot: wait, or end with a partial answer.',
      { enum: ['park', 'partial'] },
      { default: 'park' },
    ),
    approval_required_risk: about(
      'Risk, of a rule or tool, from which an action needs an approval even if no rule escalates it; 0.8 is 80 in policies.',
      { type: 'number', minimum: 0, maximum: 1 },
      { default: 'never' },
    ),
    sub_agents: about('Agents that it may delegate to.', {
      type: 'array',
      maxItems: 256,
      items: object(
        {
          name: about('Name of an agent of this file.', ID),
          description: about(
            'What the agent is for, shown to the model.',
            { type: 'string', maxLength: 4096 },
            { default: 'that of the agent' },
          ),
          ask_timeout: about(
            'Time to wait for the answer; no time passes while the agent is parked.',
            DURATION,
            { default: '120s' },
          ),
          priority: about('Highest priority in this place.', PRIORITY, {
            default: 'that of the agent',
          }),
        },
        ['name'],
      ),
    }),
    guardrails: about(
      'When a loop counts as failed.',
      object({
        max_tokens_recoveries: about(
          'Continuations of an answer that was cut at the output limit; 0 disables them.',
          { type: 'integer', minimum: 0 },
          { default: '2' },
        ),
        max_repeated_tool_steps: about(
          'Consecutive steps with the same tool calls after which the agent is stuck.',
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
          'Size to which the prompt is reduced; 0 disables trimming.',
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
      'Where the history of sessions is stored, instead of the worker.',
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
    initial_tool_choice: about('Tool that the first model call must use.', TOOL, {
      default: 'the model chooses',
    }),
    output_topic: about(
      'Topic of the approved answer when no agent waits for a reply, and of the items of feeds and custom agents.',
      { type: 'string', maxLength: 256 },
      { default: 'none' },
    ),
    follow_topics: about(
      'Topics whose items the agent receives.',
      { type: 'array', maxItems: 256, items: { type: 'string', maxLength: 256 } },
      { default: 'none' },
    ),
    unreviewed_deltas: about(
      'Whether WatchRun may show text of the model before it is reviewed.',
      { type: 'boolean' },
      { default: 'false' },
    ),
    options: about('Options of the kind.', OPTIONS, { default: 'none' }),
  },
  ['name', 'kind'],
);

/** JSON Schema 2020-12 of an agents file (AG-1). */
export const AGENTS_SCHEMA = object(
  {
    extensions: about(
      'Names that the modules of the workers add to the built-in ones.',
      object({
        middleware: about('Names of middleware.', names(), { default: 'none' }),
        strategies: about('Names of context strategies.', names(), { default: 'none' }),
        history_providers: about('Names of history providers.', names(), { default: 'none' }),
      }),
    ),
    agents: about('The agents.', {
      type: 'array',
      minItems: 1,
      maxItems: 1000,
      items: AGENT_SCHEMA,
    }),
  },
  ['agents'],
);
