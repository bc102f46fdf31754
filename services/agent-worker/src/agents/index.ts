import type { AgentKind, AgentManifest } from '../domain/agent/manifest.ts';
import type { Agent, AgentFactory } from '../runtime/agent.ts';
import { createCustomAgent } from './custom/custom-agent.ts';
import { createInformationAgent } from './feed/information-agent.ts';
import { createPersonalFeedAgent } from './feed/personal-feed-agent.ts';
import { createFlowAgent } from './flow-agent.ts';
import { createJsonActionAgent } from './json-action/json-action-agent.ts';
import type { AgentModules } from './load-modules.ts';
import { createOrchestratorAgent } from './orchestrator-agent.ts';
import { createReactAgent } from './react-agent.ts';
import { createUserProxyAgent } from './user-proxy-agent.ts';

/** Creates an agent of a built-in kind, with what the worker's modules define. */
type BuiltInFactory = (manifest: AgentManifest, instance: string, modules: AgentModules) => Agent;

/** The built-in agent loops by kind (AG-1). */
const AGENT_FACTORIES: Readonly<Partial<Record<AgentKind, BuiltInFactory>>> = {
  react: createReactAgent,
  'json-action': createJsonActionAgent,
  orchestrator: createOrchestratorAgent,
  'user-proxy': createUserProxyAgent,
  information: createInformationAgent,
  'personal-feed': createPersonalFeedAgent,
  flow: createFlowAgent,
};

/**
 * Returns a lookup of agent factories: an override, a built-in loop, or, for `custom`, the
 * TypeScript agent of that name.
 */
export function factoryFinder(
  modules: AgentModules,
  inPlace: Readonly<Partial<Record<AgentKind, AgentFactory>>> = {},
): (kind: AgentKind, name: string) => AgentFactory | undefined {
  return (kind, name) => {
    const override = inPlace[kind];
    if (override !== undefined) return override;
    const factory = AGENT_FACTORIES[kind];
    if (factory !== undefined) return (manifest, id) => factory(manifest, id, modules);
    const definition = kind === 'custom' ? modules.agents.get(name) : undefined;
    return definition && ((manifest, id) => createCustomAgent(definition, manifest, id));
  };
}
