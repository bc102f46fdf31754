import type { ChatTurn } from '../../domain/calls/model-call.ts';
import { exchangesOf } from '../../domain/context/exchanges.ts';
import type { AgentContext, Checkpoint } from '../../runtime/agent.ts';

/** How much of a conversation is not in memory any more. */
export interface ConversationState {
  /** Turns of earlier runs. */
  readonly earlier: number;
  /** Turns of this run: they lie with the checkpoints. */
  readonly own: number;
}

/**
 * A conversation under way. Each checkpoint stores the turns that are new, and lets go of those that the
 * model will not be shown again; so neither memory nor a checkpoint grows with what a window leaves out.
 */
export class Conversation {
  readonly #head: readonly ChatTurn[];
  #earlier: readonly ChatTurn[];
  #own: ChatTurn[];
  #gone: ConversationState = { earlier: 0, own: 0 };
  #stored = 0;

  /**
   * @param opened the turns before the first model call
   * @param known how many of them are instructions and what earlier runs left
   */
  constructor(opened: readonly ChatTurn[], known: number) {
    this.#head = exchangesOf(opened.slice(0, known)).head;
    this.#earlier = opened.slice(this.#head.length, known);
    this.#own = opened.slice(known);
  }

  /** What is in memory, in order. */
  get turns(): readonly ChatTurn[] {
    return [...this.#head, ...this.#earlier, ...this.#own];
  }

  /** Adds a turn. */
  add(turn: ChatTurn): void {
    this.#own.push(turn);
  }

  /** Has the session remember this run's turns (AG-8). */
  remember(ctx: AgentContext): void {
    ctx.remember([...this.#own], this.#gone.own);
  }

  /**
   * Lets go of turns.
   * @param spent turns after the instructions that are not needed any more
   */
  fold(spent: number): Required<Omit<Checkpoint, 'state'>> & { readonly gone: ConversationState } {
    const added = this.#own.slice(this.#stored - this.#gone.own);
    this.#stored += added.length;
    const fromEarlier = Math.min(spent, this.#earlier.length);
    const fromOwn = spent - fromEarlier;
    this.#earlier = this.#earlier.slice(fromEarlier);
    this.#own = this.#own.slice(fromOwn);
    const { earlier, own } = this.#gone;
    this.#gone = { earlier: earlier + fromEarlier, own: own + fromOwn };
    return { added, needsFrom: this.#gone.own, gone: this.#gone };
  }

  /** Goes on from a checkpoint, with its turns. */
  restore(gone: ConversationState, turns: readonly ChatTurn[]): void {
    this.#gone = gone;
    this.#earlier = this.#earlier.slice(gone.earlier);
    this.#own = [...turns];
    this.#stored = gone.own + turns.length;
  }
}
