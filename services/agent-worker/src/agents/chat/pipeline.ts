import type { AgentManifest } from '../../domain/agent/manifest.ts';
import type { Message } from '../../domain/agent/message.ts';
import type { ChatTurn } from '../../domain/calls/model-call.ts';
import type { AgentContext } from '../../runtime/agent.ts';
import { createView } from './create-view.ts';
import { createGuard, type Guard } from './guard.ts';
import { openConversation } from './open-conversation.ts';
import type { View } from './view.ts';

/**
 * What stands around the turns of a conversing agent, one for each run of it (AG-6, AG-8). What it
 * keeps between turns follows from the journal, since the agent runs again from its start; so its
 * effects go through the context, too.
 */
export interface ChatPipeline {
  /** The turns before the first model call: instructions, the session so far, the message. */
  open(ctx: AgentContext, message: Message): Promise<readonly ChatTurn[]>;
  /** What the model is shown of the whole conversation, which stays as it is (AG-2). */
  readonly view: View;
  /** Looks at an answer before anything of it is acted on. */
  readonly judge: Guard;
  /** Takes the conversation, the answer included, just before that is proposed. */
  close(ctx: AgentContext, turns: readonly ChatTurn[]): void;
}

/** Creates what a manifest asks for. */
export function createChatPipeline(manifest: AgentManifest): ChatPipeline {
  const { instructions } = manifest;
  let known = 0;
  return {
    async open(ctx, message) {
      const { history, turn } = await openConversation(ctx, message);
      const head: ChatTurn[] = instructions === '' ? [] : [{ role: 'system', text: instructions }];
      known = head.length + history.length;
      return [...head, ...history, turn];
    },
    view: createView(manifest),
    judge: createGuard(manifest),
    close: (ctx, turns) => ctx.remember(turns.slice(known)),
  };
}
