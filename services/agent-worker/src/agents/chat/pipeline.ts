import type { AgentManifest } from '../../domain/agent/manifest.ts';
import type { Message } from '../../domain/agent/message.ts';
import type { ChatTurn, LlmRequest } from '../../domain/calls/model-call.ts';
import type { AgentContext, ModelAnswer } from '../../runtime/agent.ts';
import type { Stop } from '../../runtime/unwinding.ts';

/** What follows from a model's answer before anything of it is acted on. */
export type AnswerVerdict =
  /** Act on it. */
  | { readonly kind: 'go_on' }
  /** Ask again, with this turn added. */
  | { readonly kind: 'ask_again'; readonly turn: ChatTurn }
  /** End the agent. */
  | { readonly kind: 'stop'; readonly stop: Stop };

/**
 * What stands around the turns of a conversing agent, one for each run of it: where history, views,
 * guardrails and middleware belong (AG-6, AG-8, AG-9). What they keep between turns follows from the
 * journal, since the agent runs again from its start; so their effects go through the context, too.
 */
export interface ChatPipeline {
  /** Turns of the session that come before this message. */
  open(ctx: AgentContext, message: Message): Promise<readonly ChatTurn[]>;
  /** What the model is shown of the whole conversation, which stays as it is (AG-2). */
  view(ctx: AgentContext, turns: readonly ChatTurn[]): Promise<readonly ChatTurn[]>;
  /** Makes one model call. */
  ask(ctx: AgentContext, request: LlmRequest): Promise<ModelAnswer>;
  /** Looks at an answer. */
  judge(answer: Extract<ModelAnswer, { kind: 'answer' }>): AnswerVerdict;
  /** The conversation, the answer to `message` included, just before that is proposed. */
  close(ctx: AgentContext, turns: readonly ChatTurn[]): Promise<void>;
}

/** Creates what a manifest asks for. */
export function createChatPipeline(_manifest: AgentManifest): ChatPipeline {
  return {
    open: async () => [],
    view: async (_ctx, turns) => turns,
    ask: (ctx, request) => ctx.llm(request),
    judge: () => ({ kind: 'go_on' }),
    close: async () => undefined,
  };
}
