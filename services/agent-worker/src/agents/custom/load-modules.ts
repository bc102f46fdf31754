import { pathToFileURL } from 'node:url';
import { ConfigError } from '@writ/config';
import { type AgentDefinition, isId } from '@writ/kernel';

const SETTING = 'WRIT_AGENT_MODULES';

/**
 * Loads the TypeScript agents, keyed by name.
 * @param modules absolute paths
 * @throws ConfigError naming the module that cannot be loaded, exports no agents, or repeats a name
 */
export async function loadAgentModules(
  modules: readonly string[],
): Promise<ReadonlyMap<string, AgentDefinition>> {
  const agents = new Map<string, AgentDefinition>();
  const problems: string[] = [];
  for (const module of modules) {
    for (const definition of await agentsIn(module, problems)) {
      if (agents.has(definition.name)) {
        problems.push(
          `${module} defines the agent ${definition.name}, which another module already defines.`,
        );
      }
      agents.set(definition.name, definition);
    }
  }
  if (problems.length > 0) throw new ConfigError(SETTING, problems);
  return agents;
}

async function agentsIn(module: string, problems: string[]): Promise<AgentDefinition[]> {
  let exported: { readonly agents?: unknown };
  try {
    exported = (await import(pathToFileURL(module).href)) as typeof exported;
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    problems.push(`the module ${module} cannot be loaded: ${why}`);
    return [];
  }
  const { agents } = exported;
  if (Array.isArray(agents) && agents.every(isDefinition)) return agents;
  problems.push(`the module ${module} does not export a list "agents" of defineAgent results.`);
  return [];
}

function isDefinition(value: unknown): value is AgentDefinition {
  const { name, run } = (value ?? {}) as Partial<AgentDefinition>;
  return typeof name === 'string' && isId(name) && typeof run === 'function';
}
