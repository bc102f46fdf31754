import type { AgentManifest } from './agent-manifest.ts';
import { withDefinitionHash } from './manifest-json.ts';

/**
 * Returns the agents with a description for each sub-agent entry: the description in the entry, else the description of
 * the agent (AG-1, AG-3).
 */
export function withChildDescriptions(
  agents: ReadonlyMap<string, AgentManifest>,
): ReadonlyMap<string, AgentManifest> {
  const described = [...agents].map(([name, agent]) => {
    const subAgents = agent.subAgents.map((child) => ({
      ...child,
      description: child.description || (agents.get(child.name)?.description ?? ''),
    }));
    return [name, withDefinitionHash({ ...agent, subAgents })] as const;
  });
  return new Map(described);
}
