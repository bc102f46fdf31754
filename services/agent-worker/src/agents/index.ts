import type { AgentKind } from '../domain/agent/manifest.ts';
import type { AgentFactory } from '../runtime/agent.ts';
import { createJsonActionAgent } from './json-action/json-action-agent.ts';

/** The loops that this worker has, by kind (AG-1). */
export const AGENT_FACTORIES: Readonly<Partial<Record<AgentKind, AgentFactory>>> = {
  'json-action': createJsonActionAgent,
};
