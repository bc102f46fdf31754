import type { AgentManifest } from '../domain/agent/manifest.ts';
import type { Agent } from '../runtime/agent.ts';
import { ChatLoop } from './chat/chat-loop.ts';
import { handoffTools } from './chat/handoffs.ts';
import { firstMessage } from './first-message.ts';
import type { AgentModules } from './load-modules.ts';

/**
 * Creates an agent that delegates parts of its work to its sub-agents, which may be orchestrators
 * themselves (AG-3).
 */
export function createOrchestratorAgent(
  manifest: AgentManifest,
  instance: string,
  { strategies }: AgentModules,
): Agent {
  return {
    id: instance,
    kind: manifest.kind,
    run: (ctx, inbox) => new ChatLoop(ctx, handoffTools, strategies).run(firstMessage(ctx, inbox)),
  };
}
