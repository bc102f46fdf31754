import type { AgentManifest } from '../../domain/agent/manifest.ts';
import type { Message } from '../../domain/agent/message.ts';
import type { ChatTurn } from '../../domain/calls/model-call.ts';
import type { AgentContext } from '../../runtime/agent.ts';
import { createView, type Strategies } from './context-strategies.ts';
import { openConversation } from './conversation.ts';
import type { Memory, View } from './view.ts';

/**
 * Conversation handling of one run of a chat agent (AG-8). Its state depends only on the
 * journal, so that replays restore it; its effects go through the context.
 */
export interface ChatPipeline {
  /**
   * Returns the turns before the first model call: instructions, history of the session, message.
   */
  open(ctx: AgentContext, message: Message): Promise<readonly ChatTurn[]>;
  /** Number of the turns returned by `open` that are instructions or history. */
  readonly known: number;
  /** Returns the turns that the model sees (AG-2). */
  readonly view: View['show'];
  /** Returns the number of turns after the instructions that no later view includes. */
  spent(turns: readonly ChatTurn[]): Promise<number>;
  /** State that a checkpoint includes. */
  readonly memory: Memory;
}

/** Creates the pipeline of a manifest. */
export function createChatPipeline(manifest: AgentManifest, strategies?: Strategies): ChatPipeline {
  const { instructions } = manifest;
  const view = createView(manifest, strategies);
  let known = 0;
  return {
    async open(ctx, message) {
      const { history, turn } = await openConversation(ctx, message);
      const head: ChatTurn[] = instructions === '' ? [] : [{ role: 'system', text: instructions }];
      known = head.length + history.length;
      return [...head, ...history, turn];
    },
    get known() {
      return known;
    },
    view: (ctx, turns) => view.show(ctx, turns),
    spent: async (turns) => (await view.spent?.(turns)) ?? 0,
    memory: {
      save: () => view.memory?.save(),
      restore: (saved) => view.memory?.restore(saved),
    },
  };
}
