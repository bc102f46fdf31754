import { AGENT_KINDS, type AgentKind } from '@writ/kernel';
import { describe, expect, it } from 'vitest';
import { loadAgents } from '../../app/definitions/agents-file.ts';
import { AGENTS_SCHEMA } from '../../app/definitions/agents-schema.ts';

type Data = Readonly<Record<string, unknown>>;

/** Minimal settings of each kind. */
const LEAST: Readonly<Record<AgentKind, Data>> = {
  react: { model: { model: 'm' } },
  'json-action': { model: { model: 'm' } },
  orchestrator: { model: { model: 'm' } },
  'user-proxy': {},
  information: { model: { model: 'm' } },
  'personal-feed': { model: { model: 'm' } },
  flow: { sub_agents: [{ name: 'child' }], options: { steps: ['child'] } },
  custom: {},
  external: { model: { model: 'm' }, options: { client_tools: 'review' } },
};

const LOOPS = 'react json-action orchestrator user-proxy information personal-feed flow custom';
const ALL = `${LOOPS} external`;
const MODEL_LOOPS = 'react json-action orchestrator information personal-feed custom';
const MODEL = `${MODEL_LOOPS} external`;
const TOOLS = 'react json-action orchestrator custom';
const TOOL_LISTS = `${TOOLS} external`;
const CHATS = 'react orchestrator';
const ASKING = 'react orchestrator flow custom';
const PARENTS = `${ASKING} external`;

/**
 * Every setting of an agents file with a value and the kinds on which it has an effect. Settings that have an effect on
 * all kinds are enforced outside of the loop, by the supervisor, the meter and spawn-budget.
 */
const SETTINGS: readonly (readonly [path: string, value: unknown, kinds: string])[] = [
  ['description', 'Works.', ALL],
  ['delegate_only', true, ALL],
  ['instructions', 'Work.', MODEL_LOOPS],
  ['final_instructions', 'Answer.', 'json-action'],
  ['model.model', 'm', MODEL],
  ['model.also_allowed', ['n'], MODEL],
  ['model.temperature', 1, MODEL_LOOPS],
  ['model.max_output_tokens', 10, MODEL],
  ['model.json_mode', true, MODEL_LOOPS],
  ['model.timeout', '5s', MODEL],
  ['tools', ['look'], TOOL_LISTS],
  ['limits.max_steps', 3, LOOPS],
  ['limits.max_tool_calls', 3, `${TOOL_LISTS} flow`],
  ['limits.max_iterations', 3, CHATS],
  ['limits.max_refusals', 3, TOOL_LISTS],
  ['limits.max_retries', 3, LOOPS],
  ['budget.max_seconds', 3, ALL],
  ['budget.max_tokens', 3, `${MODEL} flow`],
  ['budget.max_cost_usd', '3', `${MODEL} flow`],
  ['budget.max_turns', 3, `${MODEL} flow`],
  ['budget.deadline', '3m', ALL],
  ['session_budget.max_tokens', 3, `${MODEL} flow`],
  ['session_budget.max_cost_usd', '3', `${MODEL} flow`],
  ['session_budget.max_turns', 3, `${MODEL} flow`],
  ['spawn.max_agents', 3, PARENTS],
  ['spawn.allow_preempt', false, PARENTS],
  ['spawn.max_total_spawns', 3, PARENTS],
  ['spawn.max_depth', 3, PARENTS],
  ['priority', 'low', ALL],
  ['retention', 'run', ALL],
  ['on_refusal', 'stop', TOOL_LISTS],
  ['on_preempt', 'partial', `${MODEL_LOOPS} flow`],
  ['approval_required_risk', 0.5, TOOL_LISTS],
  ['sub_agents.0.name', 'child', PARENTS],
  ['sub_agents.0.description', 'Helps.', CHATS],
  ['sub_agents.0.ask_timeout', '3m', ASKING],
  ['sub_agents.0.priority', 'low', PARENTS],
  ['guardrails.max_tokens_recoveries', 1, MODEL_LOOPS],
  ['guardrails.max_repeated_tool_steps', 1, TOOLS],
  ['guardrails.reserve_tokens', 1, MODEL_LOOPS],
  ['guardrails.reserve_cost_fraction', 0.5, MODEL_LOOPS],
  ['context.context_window', 100, CHATS],
  ['context.strategy', 'compact', CHATS],
  ['context.options', { keep_last: 1 }, CHATS],
  ['context.strategies', [{ name: 'truncate' }, { name: 'sliding_window' }], CHATS],
  ['history.provider', 'documents', CHATS],
  ['history.options', { url: 'x' }, CHATS],
  ['middleware.agent', [{ name: 'logging' }], LOOPS],
  ['middleware.chat', [{ name: 'logging' }], MODEL_LOOPS],
  ['middleware.function', [{ name: 'logging' }], TOOLS],
  ['initial_tool_choice', 'look', CHATS],
  ['output_topic', 'articles', LOOPS],
  ['follow_topics', ['articles'], 'personal-feed custom'],
  ['unreviewed_deltas', true, MODEL_LOOPS],
  ['options', { steps: ['child'] }, 'flow custom'],
  ['options', { max_items: 1 }, 'information personal-feed custom'],
  ['options', { durable_follows: true }, 'personal-feed custom'],
  ['options', { idle_timeout: '30m' }, 'custom external'],
];

/** Other settings that a setting requires. */
const TOGETHER: Readonly<Record<string, Data>> = {
  initial_tool_choice: { tools: ['look'] },
  'context.options': { context: { strategy: 'compact' } },
  'history.provider': {},
  'history.options': { history: { provider: 'documents' } },
  'sub_agents.0.description': { sub_agents: [{ name: 'child' }] },
  'sub_agents.0.ask_timeout': { sub_agents: [{ name: 'child' }] },
  'sub_agents.0.priority': { sub_agents: [{ name: 'child' }] },
};

function withValue(
  data: unknown,
  [name = '', ...rest]: readonly string[],
  value: unknown,
): unknown {
  const inner = (data as Data | undefined)?.[name];
  const changed = rest.length === 0 ? value : withValue(inner, rest, value);
  if (name !== '0') return { ...(data as Data), [name]: changed };
  return [changed];
}

const CHILD_OF_EXTERNAL = { kind: 'external', model: { model: 'm' } };

function load(kind: AgentKind, agent: unknown, extensions: Data = {}) {
  const isExternal = kind === 'external';
  const child = { name: 'child', ...(isExternal ? CHILD_OF_EXTERNAL : { kind: 'user-proxy' }) };
  const file = { extensions, agents: [{ name: 'a', kind, ...(agent as Data) }, child] };
  // JSON is valid YAML.
  return loadAgents({ text: JSON.stringify(file), file: 'agents.yaml' }).agents;
}

function agentWith(kind: AgentKind, path: string, value: unknown): unknown {
  const needs = path.startsWith('model.') ? { model: { model: 'm' } } : {};
  return withValue({ ...LEAST[kind], ...needs, ...TOGETHER[path] }, path.split('.'), value);
}

describe('a setting of an agent', () => {
  it.each(SETTINGS)(
    '%s = %j is accepted only by the kinds on which it has an effect: %s (AG-1)',
    (path, value, kinds) => {
      const accepted = AGENT_KINDS.filter((kind) => {
        try {
          load(kind, agentWith(kind, path, value), { history_providers: ['documents'] });
          return true;
        } catch (error) {
          const [field = ''] = path.split('.');
          expect(String(error)).toMatch(
            new RegExp(
              `: (sub_agents|context|tools|${field}).* (not applicable to agents of kind ${kind}|is unknown)`,
            ),
          );
          return false;
        }
      });
      expect(accepted).toEqual(AGENT_KINDS.filter((kind) => kinds.split(' ').includes(kind)));
    },
  );

  it('is covered by this test if the schema of agents files contains it (AG-1)', () => {
    const listed = SETTINGS.map(([path]) => path.replace('.0.', '.*.'));
    const { items } = AGENTS_SCHEMA.properties.agents as { readonly items: Data };
    const settings = leavesOf(items).filter((path) => path !== 'name' && path !== 'kind');
    expect(settings.toSorted()).toEqual([...new Set(listed)].toSorted());
  });

  it('is named in the error for another kind, with the kinds that it has an effect on', () => {
    expect(() => load('flow', { ...LEAST.flow, tools: ['look'] })).toThrow(
      'tools is not applicable to agents of kind flow; it has an effect on react, orchestrator, json-action, custom, external only.',
    );
  });

  it('must name middleware and strategies that exist, with their options (AG-8, AG-9)', () => {
    const model = { model: { model: 'm' } };
    const chat = (...middleware: Data[]) => ({ ...model, middleware: { chat: middleware } });
    expect(() => load('react', chat({ name: 'tone' }))).toThrow(
      /middleware\.chat\.0\.name: middleware "tone" does not exist.*cache, logging/,
    );
    expect(load('react', chat({ name: 'tone' }), { middleware: ['tone'] }).get('a')).toBeDefined();
    expect(() => load('react', chat({ name: 'cache', options: { size: 3 } }))).toThrow(
      /unknown key "size"; known keys: max_entries/,
    );
    expect(() => load('react', chat({ name: 'rate_limit' }))).toThrow(/needs "options"/);
    const context = (strategy: string, options = {}) => ({
      ...model,
      context: { strategy, options },
    });
    expect(() => load('react', context('forget'))).toThrow(
      /context\.strategy "forget" does not exist/,
    );
    expect(() => load('react', context('compact', { keep: 1 }))).toThrow(/unknown key "keep"/);
    expect(load('react', context('forget'), { strategies: ['forget'] }).get('a')).toBeDefined();
  });

  it('must name a pipeline of strategies in a valid order, and a known history provider (AG-8)', () => {
    const model = { model: { model: 'm' } };
    const pipeline = (...names: string[]) => ({
      ...model,
      context: { strategies: names.map((name) => ({ name })) },
    });
    const both = ['truncate', 'sliding_window'];
    expect(load('react', pipeline(...both)).get('a')?.context.strategies).toHaveLength(2);
    expect(() => load('react', pipeline('truncate', 'forget'))).toThrow(
      /context\.strategies\.1\.name "forget" does not exist/,
    );
    expect(() => load('react', pipeline('sliding_window', 'summary'))).toThrow(
      'context.strategies must have summary before sliding_window.',
    );
    const { context } = pipeline(...both);
    expect(() => load('react', { ...model, context: { ...context, strategy: 'compact' } })).toThrow(
      'context.strategies must not be set together with strategy or options.',
    );
    const options = { keep: 1 };
    const wrong = { ...model, context: { strategies: [{ name: 'compact', options }] } };
    expect(() => load('react', wrong)).toThrow(/unknown key "keep"/);
    expect(() => load('react', { ...model, history: { provider: 'mongo' } })).toThrow(
      'history.provider "mongo" does not exist. Available history providers: none',
    );
  });

  it('must name tools that the agent has, and steps that are its sub-agents (AG-2, AG-5)', () => {
    const model = { model: { model: 'm' } };
    expect(() => load('react', { ...model, initial_tool_choice: 'look' })).toThrow(
      'initial_tool_choice "look" is not a tool of this agent. Its tools: none.',
    );
    const children = { sub_agents: [{ name: 'child' }] };
    const withHandoff = { ...model, ...children, initial_tool_choice: 'handoff_child' };
    expect(load('react', withHandoff).get('a')?.initialToolChoice).toBe('handoff_child');
    for (const [steps, problem] of [
      [undefined, /options\.steps must be a list/],
      [['other'], /options\.steps\.0 names "other", which is not in sub_agents/],
      [['child', { parallel: [] }], /options\.steps\.1 must be the name of an agent/],
    ] as const) {
      expect(() => load('flow', { ...children, options: { steps } })).toThrow(problem);
    }
  });

  it('of an external agent must have a valid value, and is rejected without the review that it configures (AP-5)', () => {
    for (const [settings, problem] of [
      [{ options: { client_tools: 'deny' } }, 'options.client_tools must be review or unreviewed'],
      [{ options: { client_tools: 'review', hold: 5 } }, 'options.hold must be a duration'],
      [{ options: { hold: '5s' } }, 'options.hold requires options.client_tools: review'],
      [{ on_refusal: 'stop' }, 'on_refusal requires options.client_tools: review'],
      [{ limits: { max_refusals: 1 } }, 'limits.max_refusals requires options.client_tools'],
    ] as const) {
      expect(() => load('external', { model: { model: 'm' }, ...settings })).toThrow(problem);
    }
  });
});

function leavesOf(schema: Data, path = ''): string[] {
  const { properties, items, type } = schema as { properties?: Data; items?: Data; type?: unknown };
  if (properties !== undefined && Object.keys(properties).length > 0) {
    return Object.entries(properties).flatMap(([name, inner]) =>
      leavesOf(inner as Data, path === '' ? name : `${path}.${name}`),
    );
  }
  const isList = type === 'array' && items?.properties !== undefined;
  return isList && path === 'sub_agents' ? leavesOf(items, `${path}.*`) : [path];
}
