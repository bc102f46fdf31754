import type { AgentManifest } from '../domain/agent/manifest.ts';
import type { Agent } from '../runtime/agent.ts';
import { ChatLoop } from './chat/chat-loop.ts';
import { handoffTools } from './chat/handoffs.ts';
import { nativeTools } from './chat/toolbox.ts';
import { firstMessage } from './first-message.ts';
import type { AgentModules } from './load-modules.ts';

/**
 * Creates an agent that alternates between reasoning and native tool calls (AG-2); its sub-agents,
 * such as a user proxy, are among its tools.
 */
export function createReactAgent(
  manifest: AgentManifest,
  instance: string,
  { strategies }: AgentModules,
): Agent {
  const toolbox = manifest.subAgents.length > 0 ? handoffTools : nativeTools;
  return {
    id: instance,
    kind: manifest.kind,
    run: (ctx, inbox) => new ChatLoop(ctx, toolbox, strategies).run(firstMessage(ctx, inbox)),
  };
}
