import { AGENT_KINDS, about } from '@writ/kernel';
import { LOOP } from './loop-schema.ts';
import {
  ALIAS,
  ALIAS_PATTERN,
  count,
  DURATION,
  ID,
  OPTIONS,
  object,
  PRIORITY,
  TOOL,
} from './schema-values.ts';
import { SPENDING } from './spending-schema.ts';

function names() {
  return { type: 'array', maxItems: 64, uniqueItems: true, items: ID };
}

/**
 * Schema of one agent in the file. Its keys correspond to the fields of writ.supervision.v1.AgentManifest; most have
 * the same name.
 */
export const AGENT_SCHEMA = object(
  {
    name: about('Unique name; runs, policies and handoffs name the agent by it.', ID),
    kind: about('The loop that runs the agent.', { enum: AGENT_KINDS }),
    description: about(
      'Purpose of the agent; ListAgents returns it, and the model of an agent that can delegate to this agent sees it.',
      { type: 'string', maxLength: 4096, default: '' },
      { default: 'empty' },
    ),
    delegate_only: about(
      'Whether only other agents can start it: ListAgents omits it, and StartRun rejects it.',
      { type: 'boolean' },
      { default: 'false' },
    ),
    instructions: about('System prompt.', { type: 'string', default: '' }, { default: 'empty' }),
    final_instructions: about(
      'System prompt of the model call that composes the answer of a json-action agent after it has reached max_steps.',
      { type: 'string', default: '' },
      { default: 'empty' },
    ),
    model: about(
      'The model and its settings; omit it for kinds that call no model.',
      object(
        {
          model: about('Alias of the model catalog.', ALIAS),
          also_allowed: about(
            'Further aliases that a run may select.',
            { type: 'array', maxItems: 64, items: ALIAS_PATTERN, default: [] },
            { default: 'none' },
          ),
          temperature: about('Sampling temperature.', {
            type: 'number',
            minimum: 0,
            maximum: 2,
            default: 0,
          }),
          max_output_tokens: about('Maximum output of one model call.', count(1), {
            default: 'that of the catalog',
            unit: 'tokens',
          }),
          json_mode: about(
            'Whether the provider must answer with one JSON object.',
            { type: 'boolean' },
            { default: 'true for json-action, else false' },
          ),
          timeout: about(
            'Timeout of each attempt of a model call, at most that of the catalog.',
            DURATION,
            {
              default: 'that of the catalog',
            },
          ),
        },
        ['model'],
      ),
    ),
    tools: about(
      'Tools that the agent may propose; only these are offered to its model.',
      { type: 'array', maxItems: 1024, uniqueItems: true, items: TOOL, default: [] },
      { default: 'none' },
    ),
    ...SPENDING,
    priority: about(
      'Rank in the queue for slots and in preemption, and weight of its model calls in the queue for max_in_flight.',
      PRIORITY,
      { default: 'normal' },
    ),
    retention: about(
      'Retention of conversation, journal and payloads: `none` deletes them after the run; `run` also deletes them, but permits a model API to store the conversation; `permanent` keeps them until they are deleted explicitly.',
      { enum: ['none', 'run', 'permanent'] },
      {
        default:
          '`permanent`; for a child at most `run`, unless its SpawnChild request asks for more',
      },
    ),
    on_refusal: about(
      'What happens after a refused action: `stop` ends the agent, and also the run if the agent is its root; `tell_model` reports the refusal to the model.',
      { enum: ['stop', 'tell_model'] },
      { default: 'stop for json-action, else tell_model' },
    ),
    on_preempt: about(
      'Behavior of the agent after it has lost its slot: `park` waits for a slot, `partial` ends with a partial answer.',
      { enum: ['park', 'partial'] },
      { default: 'park' },
    ),
    approval_required_risk: about(
      'Risk threshold: an action whose rule or tool has at least this risk requires an approval, even if no rule escalates it. 0.8 corresponds to 80 in policies.',
      { type: 'number', minimum: 0, maximum: 1 },
      { default: 'never' },
    ),
    sub_agents: about('Agents to which the agent can delegate.', {
      type: 'array',
      maxItems: 256,
      default: [],
      items: object(
        {
          name: about('Name of an agent that is defined in this file or in code.', ID),
          description: about(
            'Purpose of the agent, shown to the model.',
            { type: 'string', maxLength: 4096 },
            { default: 'that of the sub-agent' },
          ),
          ask_timeout: about(
            'Time to wait for the answer of the sub-agent, not counting time while the sub-agent is parked.',
            DURATION,
            { default: '120s' },
          ),
          priority: about(
            'Highest priority that the sub-agent can have when this agent delegates to it.',
            PRIORITY,
            {
              default: 'that of the sub-agent',
            },
          ),
        },
        ['name'],
      ),
    }),
    ...LOOP,
    initial_tool_choice: about(
      'Tool that the first model call must use.',
      { ...TOOL, default: '' },
      { default: 'the model chooses' },
    ),
    output_topic: about(
      'Topic to which the agent publishes its approved answer if no other agent waits for the answer; feeds and custom agents publish items to this topic.',
      { type: 'string', maxLength: 256, default: '' },
      { default: 'none' },
    ),
    follow_topics: about(
      'Topics whose items the agent receives.',
      { type: 'array', maxItems: 256, items: { type: 'string', maxLength: 256 }, default: [] },
      { default: 'none' },
    ),
    unreviewed_deltas: about('Whether WatchRun may show text of the model before it is reviewed.', {
      type: 'boolean',
      default: false,
    }),
    options: about('Options of the agent kind.', OPTIONS, { default: 'none' }),
  },
  ['name', 'kind'],
);

/** JSON Schema 2020-12 of an agents file (AG-1). */
export const AGENTS_SCHEMA = object(
  {
    extensions: about(
      'Names of extensions that the modules of the workers define in addition to the built-in ones.',
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
