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
 * One agent of the file; its keys have the meaning, and most have the name, of fields of
 * writ.supervision.v1.AgentManifest.
 */
export const AGENT_SCHEMA = object(
  {
    name: about('Unique name; runs, policies and handoffs name the agent by it.', ID),
    kind: about('The loop that runs the agent.', { enum: AGENT_KINDS }),
    description: about(
      'What the agent is for; shown by ListAgents, and to the model of an agent that may delegate to it.',
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
      'System prompt of the call that composes the answer of a json-action agent when its steps are used up.',
      { type: 'string', default: '' },
      { default: 'empty' },
    ),
    model: about(
      'The model and its settings; omitted by kinds that call none.',
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
      'Tools that the agent may propose; no others are offered to its model.',
      { type: 'array', maxItems: 1024, uniqueItems: true, items: TOOL, default: [] },
      { default: 'none' },
    ),
    ...SPENDING,
    priority: about(
      'Rank in the queue for slots and in preemption; weight of its model calls.',
      PRIORITY,
      { default: 'normal' },
    ),
    retention: about(
      'Whether conversation, journal and payloads are kept after the run.',
      { enum: ['none', 'run', 'permanent'] },
      {
        default: 'permanent; a child has at most run, unless its SpawnChild request asks for more',
      },
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
      default: [],
      items: object(
        {
          name: about('Name of an agent of this file or of one defined in code.', ID),
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
          priority: about('Highest priority as this sub-agent.', PRIORITY, {
            default: 'that of the agent',
          }),
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
      'Topic of the approved answer when no agent waits for a reply, and of the items of feeds and custom agents.',
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
