import type { AgentManifest } from '../domain/agent/manifest.ts';
import type { Agent } from '../runtime/agent.ts';
import { ChatLoop } from './chat/chat-loop.ts';
import { nativeTools } from './chat/toolbox.ts';
import { firstMessage } from './first-message.ts';

/** Creates an agent that alternates between reasoning and native tool calls (AG-2). */
export function createReactAgent(manifest: AgentManifest, instance: string): Agent {
  return {
    id: instance,
    kind: manifest.kind,
    run: (ctx, inbox) => new ChatLoop(ctx, nativeTools).run(firstMessage(ctx, inbox)),
  };
}
