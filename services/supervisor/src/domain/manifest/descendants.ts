import type { AgentManifest } from './agent-manifest.ts';

/** Every agent that work may come to from `root`, over any number of hands; `root` only if it does. */
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
