import type { AgentKind } from '@writ/kernel';
import type { AgentManifest } from '../domain/agent/manifest.ts';
import type { Agent, AgentFactory } from '../runtime/agent.ts';
import { createCustomAgent } from './custom/custom-agent.ts';
import { createInformationAgent } from './feed/information-agent.ts';
import { createPersonalFeedAgent } from './feed/personal-feed-agent.ts';
import { createFlowAgent } from './flow-agent.ts';
import { createJsonActionAgent } from './json-action/json-action-agent.ts';
import { type AgentModules, versionOf } from './load-modules.ts';
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

/** The code of the agents that a worker can run. */
export interface AgentCode {
  /**
   * Returns the current version of an agent's code, empty for code without versions; undefined when
   * there is no such agent.
   */
  versionOf(kind: AgentKind, name: string): string | undefined;
  /** Returns the factory of an agent's code in this version; undefined when there is none. */
  factoryOf(kind: AgentKind, name: string, version: string): AgentFactory | undefined;
}

/**
 * Returns the code of agents: an override, a built-in loop, or, for the kind `custom`, the TypeScript agent with the
 * name of the agent. The versions of a TypeScript agent are listed with the current version first (RT-1).
 */
export function agentCode(
  modules: AgentModules,
  overrides: Readonly<Partial<Record<AgentKind, AgentFactory>>> = {},
): AgentCode {
  const unversioned = (kind: AgentKind): AgentFactory | undefined => {
    const factory = AGENT_FACTORIES[kind];
    return overrides[kind] ?? (factory && ((manifest, id) => factory(manifest, id, modules)));
  };
  const definitionsOf = (kind: AgentKind, name: string) =>
    kind === 'custom' ? (modules.agents.get(name) ?? []) : [];
  return {
    versionOf(kind, name) {
      if (unversioned(kind) !== undefined) return '';
      const [current] = definitionsOf(kind, name);
      return current && versionOf(current);
    },
    factoryOf(kind, name, version) {
      const factory = unversioned(kind);
      // A later release may version built-in kinds; this release cannot continue such agents.
      if (factory !== undefined) return version === '' ? factory : undefined;
      const definition = definitionsOf(kind, name).find((each) => versionOf(each) === version);
      return definition && ((manifest, id) => createCustomAgent(definition, manifest, id));
    },
  };
}
