import type { ChatTurn } from '../../domain/calls/model-call.ts';
import type { AgentContext } from '../../runtime/agent.ts';

/** What the model is shown of a conversation, which stays as it is (AG-2, AG-8). */
export interface View {
  show(ctx: AgentContext, turns: readonly ChatTurn[]): Promise<readonly ChatTurn[]>;
  /** How many turns after the instructions it will never show again; left out for none. */
  spent?(turns: readonly ChatTurn[]): Promise<number>;
  /** What it keeps between turns, as plain JSON, and how it takes that back; left out for nothing. */
  readonly memory?: Memory;
}

/** Something that is kept between turns, and goes along with a checkpoint. */
export interface Memory {
  /** Plain JSON; undefined for nothing. */
  save(): unknown;
  restore(saved: unknown): void;
}
