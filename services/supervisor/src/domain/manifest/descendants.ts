import type { AgentManifest } from './agent-manifest.ts';

/**
 * Returns all agents to which `root` can delegate, directly or indirectly; includes `root` only if an agent can
 * delegate to it.
 */
export function descendants(
  root: AgentManifest,
  agents: ReadonlyMap<string, AgentManifest>,
): readonly AgentManifest[] {
  const found = new Map<string, AgentManifest>();
  const queue = [root];
  for (const { subAgents } of queue) {
    for (const { name } of subAgents) {
      const agent = agents.get(name);
      if (agent === undefined || found.has(name)) continue;
      found.set(name, agent);
      queue.push(agent);
    }
  }
  return [...found.values()];
}
