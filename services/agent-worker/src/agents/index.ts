import type { AgentDefinition } from '@writ/kernel';
import type { AgentKind } from '../domain/agent/manifest.ts';
import type { AgentFactory } from '../runtime/agent.ts';
import { createCustomAgent } from './custom/custom-agent.ts';
import { createInformationAgent } from './feed/information-agent.ts';
import { createPersonalFeedAgent } from './feed/personal-feed-agent.ts';
import { createFlowAgent } from './flow-agent.ts';
import { createJsonActionAgent } from './json-action/json-action-agent.ts';
import { createOrchestratorAgent } from './orchestrator-agent.ts';
import { createReactAgent } from './react-agent.ts';
import { createUserProxyAgent } from './user-proxy-agent.ts';

/** The built-in agent loops by kind (AG-1). */
const AGENT_FACTORIES: Readonly<Partial<Record<AgentKind, AgentFactory>>> = {
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
  written: ReadonlyMap<string, AgentDefinition>,
  inPlace: Readonly<Partial<Record<AgentKind, AgentFactory>>> = {},
): (kind: AgentKind, name: string) => AgentFactory | undefined {
  return (kind, name) => {
    const factory = inPlace[kind] ?? AGENT_FACTORIES[kind];
    if (factory !== undefined || kind !== 'custom') return factory;
    const definition = written.get(name);
    return (
      definition && ((manifest, instance) => createCustomAgent(definition, manifest, instance))
    );
  };
}
