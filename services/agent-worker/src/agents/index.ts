import type { AgentKind } from '../domain/agent/manifest.ts';
import type { AgentFactory } from '../runtime/agent.ts';
import { createInformationAgent } from './feed/information-agent.ts';
import { createPersonalFeedAgent } from './feed/personal-feed-agent.ts';
import { createFlowAgent } from './flow/flow-agent.ts';
import { createJsonActionAgent } from './json-action/json-action-agent.ts';
import { createOrchestratorAgent } from './orchestrator/orchestrator-agent.ts';
import { createReactAgent } from './react/react-agent.ts';
import { createUserProxyAgent } from './user-proxy/user-proxy-agent.ts';

/** The loops that this worker has, by kind (AG-1). */
export const AGENT_FACTORIES: Readonly<Partial<Record<AgentKind, AgentFactory>>> = {
  react: createReactAgent,
  'json-action': createJsonActionAgent,
  orchestrator: createOrchestratorAgent,
  'user-proxy': createUserProxyAgent,
  information: createInformationAgent,
  'personal-feed': createPersonalFeedAgent,
  flow: createFlowAgent,
};
