import type { AgentManifest } from '../../domain/agent/manifest.ts';
import type { Agent } from '../../runtime/agent.ts';
import { ChatLoop } from '../chat/chat-loop.ts';
import { firstMessage } from '../first-message.ts';
import { handoffTools } from './handoff-tools.ts';

/**
 * Creates an agent that hands parts of its work to others, and goes on with what comes back (AG-3).
 * Those may be orchestrators themselves.
 */
export function createOrchestratorAgent(manifest: AgentManifest, instance: string): Agent {
  return {
    id: instance,
    kind: manifest.kind,
    run: (ctx, inbox) => new ChatLoop(ctx, handoffTools).run(firstMessage(ctx, inbox)),
  };
}
