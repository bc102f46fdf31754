import type { ChatTurn } from '../../domain/calls/model-call.ts';
import type { AgentContext } from '../../runtime/agent.ts';

/** What the model is shown of a conversation, which stays as it is (AG-2, AG-8). */
export type View = (ctx: AgentContext, turns: readonly ChatTurn[]) => Promise<readonly ChatTurn[]>;
