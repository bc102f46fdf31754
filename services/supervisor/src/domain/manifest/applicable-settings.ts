import {
  AGENT_KINDS,
  type AgentKind,
  InvalidRequestError,
  MIDDLEWARE_OPTIONS,
  type MiddlewareLevel,
  STRATEGY_OPTIONS,
  strategyBeforeSummary,
} from '@writ/kernel';
import type { AgentSettings } from './agent-definition.ts';

/** Names that modules of the workers define, in addition to the built-in ones (AG-8, AG-9). */
export interface Extensions {
  readonly middleware?: readonly string[];
  readonly strategies?: readonly string[];
  readonly history_providers?: readonly string[];
}

const without = (...kinds: readonly AgentKind[]) =>
  AGENT_KINDS.filter((kind) => !kinds.includes(kind));

const CHATS = ['react', 'orchestrator'] as const satisfies readonly AgentKind[];
/**
 * Kinds that call a model. A user proxy only passes questions to a person, and a flow only runs its stages, which have
 * their own models (AG-4).
 */
const WITH_MODEL = without('user-proxy', 'flow');
/** Kinds with a loop in the worker; the loop of an external agent runs in its own program (AP-1). */
const WITH_LOOP = without('external');
const WITH_MODEL_LOOP = without('user-proxy', 'flow', 'external');
const WITH_TOOLS = [...CHATS, 'json-action', 'custom'] as const satisfies readonly AgentKind[];
/**
 * Kinds with a list of tools. An external agent calls its tools through agent-proxy, and its own program handles
 * refused MCP calls (AP-3).
 */
const WITH_TOOL_LIST = [...WITH_TOOLS, 'external'] as const satisfies readonly AgentKind[];
/**
 * Kinds that wait for the answers of their sub-agents. The sub-agents of an external agent run in the program of that
 * agent (AP-6).
 */
const AWAITING = [...CHATS, 'flow', 'custom'] as const satisfies readonly AgentKind[];
const WITH_CHILDREN = [...AWAITING, 'external'] as const satisfies readonly AgentKind[];
const FEEDS = ['information', 'personal-feed'] as const satisfies readonly AgentKind[];

/**
 * Settings that have an effect only on some kinds of agents, with the kinds for each setting. All other settings have
 * an effect on every kind (AG-1). A dot descends into a setting, `*` into the entries of a list.
 */
export const APPLICABLE_KINDS: Readonly<Record<string, readonly AgentKind[]>> = {
  instructions: WITH_MODEL_LOOP,
  final_instructions: ['json-action'],
  model: WITH_MODEL,
  'model.temperature': WITH_MODEL_LOOP,
  'model.json_mode': WITH_MODEL_LOOP,
  'limits.max_steps': WITH_LOOP,
  'limits.max_retries': WITH_LOOP,
  tools: WITH_TOOL_LIST,
  // Applies to flows, too, because the value of a parent also limits its children.
  'limits.max_tool_calls': [...WITH_TOOL_LIST, 'flow'],
  'limits.max_iterations': CHATS,
  'limits.max_refusals': WITH_TOOL_LIST,
  'budget.max_tokens': without('user-proxy'),
  'budget.max_cost_usd': without('user-proxy'),
  'budget.max_turns': without('user-proxy'),
  session_budget: without('user-proxy'),
  spawn: WITH_CHILDREN,
  on_refusal: WITH_TOOL_LIST,
  on_preempt: without('user-proxy', 'external'),
  approval_required_risk: WITH_TOOL_LIST,
  sub_agents: WITH_CHILDREN,
  'sub_agents.*.description': CHATS,
  'sub_agents.*.ask_timeout': AWAITING,
  guardrails: WITH_MODEL_LOOP,
  'guardrails.max_repeated_tool_steps': WITH_TOOLS,
  context: CHATS,
  history: CHATS,
  'middleware.agent': WITH_LOOP,
  'middleware.chat': WITH_MODEL_LOOP,
  'middleware.function': WITH_TOOLS,
  initial_tool_choice: CHATS,
  follow_topics: ['personal-feed', 'custom'],
  output_topic: WITH_LOOP,
  unreviewed_deltas: WITH_MODEL_LOOP,
  options: [...FEEDS, 'flow', 'custom', 'external'],
};

/**
 * Rejects settings without an effect on the kind of the agent, and names that do not exist.
 * @throws InvalidRequestError SETTING_NOT_APPLICABLE, MODEL_NOT_APPLICABLE, UNKNOWN_MIDDLEWARE, INVALID_MANIFEST
 *   naming the field
 */
export function assertApplicable(settings: AgentSettings, extensions: Extensions): void {
  for (const [setting, kinds] of Object.entries(APPLICABLE_KINDS)) {
    if (kinds.includes(settings.kind)) continue;
    const [field] = fieldsAt(settings, setting.split('.'));
    if (field !== undefined) throw notApplicable(field, settings.kind, kinds);
  }
  assertNames(settings, extensions);
  assertToolChoice(settings);
  assertKindOptions(settings);
}

/** The paths of the values at a setting. */
function fieldsAt(value: unknown, [first, ...rest]: readonly string[]): string[] {
  // Empty lists and maps are equal to the defaults, so they count as omitted.
  if (value === undefined || isEmpty(value)) return [];
  if (first === undefined) return [''];
  const entries =
    first === '*' ? Object.entries(value ?? {}) : [[first, at(value, first)] as const];
  return entries.flatMap(([name, inner]) =>
    fieldsAt(inner, rest).map((path) => (path === '' ? name : `${name}.${path}`)),
  );
}

function isEmpty(value: unknown): boolean {
  return typeof value === 'object' && value !== null && Object.keys(value).length === 0;
}

function at(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, name) : undefined;
}

function notApplicable(field: string, kind: AgentKind, kinds: readonly AgentKind[]) {
  const reason = field === 'model' ? 'MODEL_NOT_APPLICABLE' : 'SETTING_NOT_APPLICABLE';
  return new InvalidRequestError(
    reason,
    `${field} is not applicable to agents of kind ${kind}; it has an effect on ${kinds.join(', ')} only.`,
    { field },
  );
}

function assertNames(
  { middleware, context, history }: AgentSettings,
  extensions: Extensions,
): void {
  for (const level of Object.keys(MIDDLEWARE_OPTIONS) as MiddlewareLevel[]) {
    const known = [...Object.keys(MIDDLEWARE_OPTIONS[level]), ...(extensions.middleware ?? [])];
    for (const [index, { name }] of (middleware?.[level] ?? []).entries()) {
      if (known.includes(name)) continue;
      const field = `middleware.${level}.${index}.name`;
      throw new InvalidRequestError(
        'UNKNOWN_MIDDLEWARE',
        `${field}: middleware "${name}" does not exist at the level ${level}. Available middleware: ${known.join(', ')}; name those of your modules in extensions.middleware.`,
        { field },
      );
    }
  }
  assertStrategies(context, extensions.strategies);
  const { provider } = history ?? {};
  const providers = extensions.history_providers ?? [];
  if (provider === undefined || providers.includes(provider)) return;
  throw invalid(
    'history.provider',
    `"${provider}" does not exist. Available history providers: ${providers.join(', ') || 'none'}; name those of your modules in extensions.history_providers.`,
  );
}

function assertStrategies(
  { strategy, options, strategies }: AgentSettings['context'] = {},
  ofModules: readonly string[] = [],
): void {
  const known = [...Object.keys(STRATEGY_OPTIONS), ...ofModules];
  const one = strategy === undefined ? [] : [['context.strategy', strategy] as const];
  const pipeline = (strategies ?? []).map(
    ({ name }, index) => [`context.strategies.${index}.name`, name] as const,
  );
  for (const [field, name] of [...one, ...pipeline]) {
    if (known.includes(name)) continue;
    throw invalid(
      field,
      `"${name}" does not exist. Available strategies: ${known.join(', ')}; name those of your modules in extensions.strategies.`,
    );
  }
  if (strategies === undefined) return;
  if (strategy !== undefined || options !== undefined) {
    throw invalid('context.strategies', 'must not be set together with strategy or options.');
  }
  const wrong = strategyBeforeSummary(strategies.map(({ name }) => name));
  if (wrong === undefined) return;
  throw invalid('context.strategies', `must have summary before ${wrong}.`);
}

/** Requires that `initial_tool_choice` is a tool that is offered to the model (AG-2). */
function assertToolChoice(settings: AgentSettings): void {
  const { initial_tool_choice: choice, tools = [], sub_agents: children = [] } = settings;
  const offered = offeredTools(tools, children);
  if (choice === undefined || offered.includes(choice)) return;
  throw invalid(
    'initial_tool_choice',
    `"${choice}" is not a tool of this agent. Its tools: ${offered.join(', ') || 'none'}.`,
  );
}

/**
 * Returns the tools that are offered to the model: the tools of the agent, and a handoff tool for each sub-agent
 * (AG-3).
 */
export function offeredTools(
  tools: readonly string[],
  subAgents: readonly { readonly name: string }[],
): readonly string[] {
  return [...tools, ...subAgents.map(({ name }) => `handoff_${name}`)];
}

/** Option names of the kinds with a fixed set of options; custom agents define their own options. */
const KIND_OPTIONS = {
  flow: ['steps'],
  information: ['max_items'],
  'personal-feed': ['max_items', 'durable_follows'],
  external: ['idle_timeout', 'max_open_runs', 'client_tools', 'hold'],
};

function assertKindOptions(definition: AgentSettings) {
  const { kind, options = {}, sub_agents: children = [] } = definition;
  if (!isWithOptions(kind)) return;
  const known = KIND_OPTIONS[kind];
  const other = Object.keys(options).find((name) => !known.includes(name));
  if (other !== undefined) {
    const names = known.join(', ');
    throw invalid(`options.${other}`, `is unknown; agents of kind ${kind} have only ${names}.`);
  }
  if (kind === 'external') return assertExternal(definition);
  if (kind === 'flow') assertSteps(options.steps, new Set(children.map(({ name }) => name)));
  const { max_items: maxItems = 0, durable_follows: durable = false } = options;
  if (typeof durable !== 'boolean') {
    throw invalid('options.durable_follows', 'must be true or false.');
  }
  if (typeof maxItems === 'number' && Number.isInteger(maxItems) && maxItems >= 0) return;
  throw invalid('options.max_items', 'must be a whole number of at least 0.');
}

function isWithOptions(kind: AgentKind): kind is keyof typeof KIND_OPTIONS {
  return kind in KIND_OPTIONS;
}

/**
 * Checks the settings of an external agent. Its models must not be patterns, because its tab and tokens list every
 * model that it may use (AP-1).
 */
function assertExternal(settings: AgentSettings): void {
  const { model, options = {}, sub_agents: children = [] } = settings;
  const { max_open_runs: maxOpenRuns = 1 } = options;
  for (const name of ['idle_timeout', 'hold'] as const) {
    const time = options[name];
    if (time === undefined || (typeof time === 'string' && DURATION.test(time))) continue;
    throw invalid(`options.${name}`, 'must be a duration such as 30m.');
  }
  assertClientTools(settings);
  if (!(typeof maxOpenRuns === 'number' && Number.isInteger(maxOpenRuns) && maxOpenRuns >= 1)) {
    throw invalid('options.max_open_runs', 'must be a whole number of at least 1.');
  }
  if (children.length > 1) {
    throw invalid('sub_agents.1', 'must be removed: an external agent has at most one sub-agent.');
  }
  for (const [index, alias] of (model?.also_allowed ?? []).entries()) {
    if (!alias.includes('*')) continue;
    throw invalid(`model.also_allowed.${index}`, 'must name one model, not a pattern.');
  }
}

const DURATION = /^(\d+(ms|s|m|h|d))+$/;

/** Settings of the review of client-executed tools have no effect unless `client_tools` is `review` (AP-5). */
function assertClientTools({ options = {}, on_refusal, limits }: AgentSettings): void {
  const { client_tools: mode = 'unreviewed', hold } = options;
  if (mode !== 'unreviewed' && mode !== 'review') {
    throw invalid('options.client_tools', 'must be review or unreviewed.');
  }
  const given = { 'options.hold': hold, on_refusal, 'limits.max_refusals': limits?.max_refusals };
  for (const [field, value] of Object.entries(given)) {
    if (mode === 'review' || value === undefined) continue;
    throw invalid(field, 'requires options.client_tools: review for agents of kind external.');
  }
}

function assertSteps(steps: unknown, children: ReadonlySet<string>): void {
  if (!Array.isArray(steps) || steps.length === 0) {
    throw invalid('options.steps', 'must be a list of agents, or of { parallel: [agents] }.');
  }
  for (const [index, step] of steps.entries()) {
    const parallel: unknown = at(step, 'parallel');
    const names = Array.isArray(parallel) && parallel.length > 0 ? parallel : [step];
    for (const name of names) {
      if (typeof name === 'string' && children.has(name)) continue;
      const what = typeof name === 'string' ? `names "${name}", which is not in sub_agents.` : '';
      const rule = what || 'must be the name of an agent or { parallel: [names] }.';
      throw invalid(`options.steps.${index}`, rule);
    }
  }
}

function invalid(field: string, rule: string): InvalidRequestError {
  return new InvalidRequestError('INVALID_MANIFEST', `${field} ${rule}`, { field });
}
