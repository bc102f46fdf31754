import type { AgentManifest } from '../../domain/agent/manifest.ts';
import type { Message } from '../../domain/agent/message.ts';
import type { ChatTurn } from '../../domain/calls/model-call.ts';
import type { AgentContext } from '../../runtime/agent.ts';
import { openConversation } from './conversation.ts';
import { createGuard, type Guard } from './guard.ts';
import type { Memory, View } from './view.ts';
import { createView } from './view.ts';

/**
 * What stands around the turns of a conversing agent, one for each run of it (AG-6, AG-8). What it
 * keeps between turns follows from the journal, since the agent runs again from its start; so its
 * effects go through the context, too.
 */
export interface ChatPipeline {
  /** The turns before the first model call: instructions, the session so far, the message. */
  open(ctx: AgentContext, message: Message): Promise<readonly ChatTurn[]>;
  /** How many of those are instructions and the session so far. */
  readonly known: number;
  /** What the model is shown of the whole conversation, which stays as it is (AG-2). */
  readonly view: View['show'];
  /** How many turns after the instructions no view will show again. */
  spent(turns: readonly ChatTurn[]): Promise<number>;
  /** Looks at an answer before anything of it is acted on. */
  readonly judge: Guard['judge'];
  /** What goes along with a checkpoint. */
  readonly memory: Memory;
}

/** What the parts of a pipeline keep. */
interface PipelineState {
  readonly guard: unknown;
  readonly view?: unknown;
}

/** Creates what a manifest asks for. */
export function createChatPipeline(manifest: AgentManifest): ChatPipeline {
  const { instructions } = manifest;
  const view = createView(manifest);
  const guard = createGuard(manifest);
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
    judge: guard.judge,
    memory: {
      save: (): PipelineState => ({ guard: guard.memory.save(), view: view.memory?.save() }),
      restore: (saved) => {
        const state = saved as PipelineState;
        guard.memory.restore(state.guard);
        view.memory?.restore(state.view);
      },
    },
  };
}
