import { ConfigError, schemaProblems } from '@writ/config';
import { type AgentDefinition, isId, isWritError, omitUndefined } from '@writ/kernel';
import type { AgentSettings } from '../../domain/manifest/agent-definition.ts';
import type { AgentManifest } from '../../domain/manifest/agent-manifest.ts';
import type { Extensions } from '../../domain/manifest/applicable-settings.ts';
import { AGENT_SCHEMA } from './agents-schema.ts';
import { manifestOf } from './manifest-of.ts';

/**
 * The results of {@link createAgent}, used to reject changed copies, whose settings were not validated and do not match
 * their hash.
 */
const created = new WeakSet<AgentManifest>();

/** The functions of custom agents, by the results of {@link createAgent}. */
const functions = new WeakMap<AgentManifest, AgentDefinition>();

/** The settings of an agent in code; a `custom` agent can include its function. */
export type AgentInCode = AgentSettings & {
  /**
   * The function of a `custom` agent, as for defineAgent; the embedded worker runs it. If omitted, a module of
   * WRIT_AGENT_MODULES must define it (RT-1).
   */
  readonly run?: AgentDefinition['run'];
  /** Version of `run`, of a-z, 0-9, _ and -; see AgentDefinition. Default: the empty version. */
  readonly version?: string;
};

/**
 * Creates an agent of any kind from settings in code, with the checks and the defaults of agents.yaml (AG-1). The
 * embedded platform runs it: see `agents` of PlatformOptions. The existence of its sub-agents is checked when the
 * platform starts.
 *
 * @param extensions names that the modules of the worker add, as in agents.yaml; default: none
 * @returns the complete definition, with all defaults; read-only
 * @throws ConfigError INVALID_CONFIG with one sentence for each problem, which names the agent and the setting
 *
 * @example
 * ```ts
 * import { createAgent } from 'writ';
 *
 * const assistant = createAgent({
 *   name: 'assistant',
 *   kind: 'react',
 *   instructions: 'You answer questions about orders.',
 *   model: { model: 'refund-desk', timeout: '60s' },
 *   tools: ['get_refund_context'],
 *   budget: { max_cost_usd: '0.50' },
 * });
 *
 * const clerk = createAgent({
 *   name: 'clerk',
 *   kind: 'custom',
 *   tools: ['get_refund_context'],
 *   async run(operations, { goal }) {
 *     const found = await operations.tool('get_refund_context', { user_id: Number(goal) });
 *     return found.ok ? `Customer ${goal} exists.` : found.message;
 *   },
 * });
 * ```
 */
export function createAgent(settings: AgentInCode, extensions: Extensions = {}): AgentManifest {
  const { run, version, ...declared } = settings;
  // A copy, so that later changes of the settings have no effect; drops keys that are undefined.
  const copy = JSON.parse(JSON.stringify(declared)) as AgentSettings;
  const { name } = copy;
  const agent = typeof name === 'string' ? `Agent "${name}"` : 'Agent without a name';
  const problems = [...schemaProblems(copy, AGENT_SCHEMA, 'the agent'), ...codeProblems(settings)];
  if (problems.length > 0) throw invalid(agent, problems);
  try {
    const manifest = frozen(manifestOf(copy, extensions));
    created.add(manifest);
    if (run !== undefined) {
      functions.set(manifest, { name, run, ...omitUndefined({ version }) });
    }
    return manifest;
  } catch (error) {
    if (!isWritError(error)) throw error;
    throw invalid(agent, [error.message], error);
  }
}

/** The functions that were given to {@link createAgent}, for the worker. */
export function functionsOf(agents: readonly AgentManifest[]): AgentDefinition[] {
  return agents.flatMap((agent) => functions.get(agent) ?? []);
}

/** The problems of the function of an agent. */
function codeProblems({ kind, run, version }: AgentInCode): string[] {
  if (run === undefined) {
    return version === undefined ? [] : ['version has an effect only together with run.'];
  }
  if (kind !== 'custom') {
    return [`run is not applicable to agents of kind ${kind}; it has an effect on custom only.`];
  }
  if (typeof run !== 'function') return [`run must be a function, not ${typeof run}.`];
  if (version === undefined || isId(version)) return [];
  return [`version must be 1 to 64 of a-z, 0-9, _ and -, not ${JSON.stringify(version)}.`];
}

/**
 * The agents by name.
 * @throws ConfigError for an agent that createAgent did not create, and for a name that is used twice
 */
export function byName(agents: readonly AgentManifest[]): ReadonlyMap<string, AgentManifest> {
  const known = new Map<string, AgentManifest>();
  const problems: string[] = [];
  for (const agent of agents) {
    const { name } = agent;
    if (!created.has(agent)) problems.push(`Agent "${name}" was not created by createAgent.`);
    if (known.has(name)) {
      problems.push(`Agent "${name}" is defined twice; agent names must be unique.`);
    }
    known.set(name, agent);
  }
  if (problems.length > 0) throw new ConfigError('The list of agents', problems);
  return known;
}

/**
 * Checks that all sub-agents of `agents` are in `known` and of a permitted kind.
 * @throws ConfigError listing every problem
 */
export function assertSubAgents(
  agents: readonly AgentManifest[],
  known: ReadonlyMap<string, AgentManifest>,
): void {
  const problems = agents.flatMap(({ name, subAgents, kind }) =>
    subAgents.flatMap(({ name: child }, index) => {
      const where = `Agent "${name}": sub_agents.${index}.name: agent "${child}"`;
      const found = known.get(child);
      return found === undefined ? [`${where} is not defined.`] : misplaced(kind, found, where);
    }),
  );
  if (problems.length > 0) throw new ConfigError('The list of agents', problems);
}

/**
 * Returns the problem of a sub-agent of the wrong kind, if there is one: all sub-agents of an external agent must be
 * external, and no other agent may have external sub-agents (AP-6).
 */
export function misplaced(
  parent: AgentManifest['kind'],
  { kind }: AgentManifest,
  where: string,
): string[] {
  if ((kind === 'external') === (parent === 'external')) return [];
  const rule =
    'all sub-agents of an external agent must be external, and no other agent may have external ones';
  return [`${where} is of kind ${kind}; ${rule}.`];
}

function invalid(agent: string, problems: readonly string[], cause?: Error): ConfigError {
  return new ConfigError(
    agent,
    problems.map((problem) => `${agent}: ${problem}`),
    { cause },
  );
}

function frozen<T>(value: T): T {
  if (typeof value !== 'object' || value === null) return value;
  for (const inner of Object.values(value)) frozen(inner);
  return Object.freeze(value);
}
