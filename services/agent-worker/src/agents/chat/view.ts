import type { ChatTurn } from '../../domain/calls/model-call.ts';
import type { AgentContext } from '../../runtime/agent.ts';

/** Selects the turns that the model sees; does not change the conversation (AG-2, AG-8). */
export interface View {
  show(ctx: AgentContext, turns: readonly ChatTurn[]): Promise<readonly ChatTurn[]>;
  /**
   * Returns the number of turns after the instructions that no later view includes; default: none.
   */
  spent?(turns: readonly ChatTurn[]): Promise<number>;
  /** State between turns; default: none. */
  readonly memory?: Memory;
}

/** State between turns, which a checkpoint includes. */
export interface Memory {
  /** Returns plain JSON, or undefined for no state. */
  save(): unknown;
  restore(saved: unknown): void;
}
