import { ConfigError, schemaProblems } from '@writ/config';
import { isWritError } from '@writ/kernel';
import type { AgentManifest } from '../../domain/manifest/agent-manifest.ts';
import type { Extensions } from '../../domain/manifest/applicable-settings.ts';
import { manifestOf } from '../../domain/manifest/manifest-of.ts';
import { type AgentSettings, definitionOf } from './agent-settings.ts';
import { AGENT_SCHEMA } from './agents-schema.ts';

/** The results of {@link createAgent}: a changed copy has settings that were not checked, and the hash of others. */
const created = new WeakSet<AgentManifest>();

/**
 * Creates an agent of any kind from settings in code, with the checks and the defaults of agents.yaml (AG-1).
 * The embedded platform runs it: see `agents` of PlatformOptions. That its sub-agents exist is checked at the start.
 *
 * @param extensions names that the modules of the worker add, as in agents.yaml; default: none
 * @returns the complete definition, with all defaults; read-only
 * @throws ConfigError INVALID_CONFIG with one sentence for each problem, which names the agent and the setting
 *
 * @example
 * ```ts
 * import { createAgent } from '@writ/platform';
 *
 * const assistant = createAgent({
 *   name: 'assistant',
 *   kind: 'react',
 *   instructions: 'You answer questions about orders.',
 *   model: { model: 'refund-desk', timeout: '60s' },
 *   tools: ['get_refund_context'],
 *   budget: { max_cost_usd: '0.50' },
 * });
 * ```
 */
export function createAgent(settings: AgentSettings, extensions: Extensions = {}): AgentManifest {
  // A copy, so that later changes of the settings have no effect; drops keys that are undefined.
  const copy = JSON.parse(JSON.stringify(settings)) as AgentSettings;
  const { name } = copy;
  const agent = typeof name === 'string' ? `Agent "${name}"` : 'Agent without a name';
  const problems = schemaProblems(copy, AGENT_SCHEMA, 'the agent');
  if (problems.length > 0) throw invalid(agent, problems);
  try {
    const manifest = frozen(manifestOf(definitionOf(copy), extensions));
    created.add(manifest);
    return manifest;
  } catch (error) {
    if (!isWritError(error)) throw error;
    throw invalid(agent, [error.message], error);
  }
}

/**
 * The agents by name.
 * @throws ConfigError for an agent that createAgent did not make, and for a name that is used twice
 */
export function byName(agents: readonly AgentManifest[]): ReadonlyMap<string, AgentManifest> {
  const known = new Map<string, AgentManifest>();
  const problems: string[] = [];
  for (const agent of agents) {
    const { name } = agent;
    if (!created.has(agent)) problems.push(`Agent "${name}" was not made by createAgent.`);
    if (known.has(name)) {
      problems.push(`Agent "${name}" is defined twice; agent names must be unique.`);
    }
    known.set(name, agent);
  }
  if (problems.length > 0) throw new ConfigError('The list of agents', problems);
  return known;
}

/** @throws ConfigError unless all sub-agents of `agents` are among those that can be started */
export function assertSubAgents(
  agents: readonly AgentManifest[],
  known: ReadonlyMap<string, AgentManifest>,
): void {
  const problems = agents.flatMap(({ name, subAgents }) =>
    subAgents.flatMap(({ name: child }, index) =>
      known.has(child)
        ? []
        : [`Agent "${name}": sub_agents.${index}.name: agent "${child}" is not defined.`],
    ),
  );
  if (problems.length > 0) throw new ConfigError('The list of agents', problems);
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
