import { HistoryRetention, isJsonObject, type JsonObject, type JsonValue } from '@writ/kernel';
import type { Message } from '../../domain/agent/message.ts';
import type { ChatTurn } from '../../domain/calls/model-call.ts';
import { turnsFromSteps } from '../../domain/context/turns-from-steps.ts';
import { exchangesOf } from '../../domain/context/views.ts';
import type { AgentContext, Checkpoint } from '../../runtime/agent.ts';
import { textOf } from '../first-message.ts';

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

/** Where a message's data may bring the stored steps of a session that this worker does not know. */
const SEED = 'session_steps';

/** The turns that a conversation begins with. */
export interface Opening {
  /** What was said in the session before. */
  readonly history: readonly ChatTurn[];
  /** The message itself. */
  readonly turn: ChatTurn;
}

/**
 * Opens the conversation on a message: with what earlier runs left in the session, or, where there is
 * nothing, with the stored steps that the message brings (AG-8).
 */
export async function openConversation(ctx: AgentContext, message: Message): Promise<Opening> {
  const { seed, data } = takeSeed(message.dataJson);
  const turn: ChatTurn = { role: 'user', text: textOf({ text: message.text, dataJson: data }) };
  // Of runs that keep nothing there is nothing to recall.
  const keeps = ctx.meta.supervision?.retention === HistoryRetention.PERMANENT;
  const history = keeps ? await ctx.recall() : [];
  return { history: history.length > 0 ? history : turnsFromSteps(seed), turn };
}

function takeSeed(dataJson: string): {
  readonly seed: readonly JsonObject[];
  readonly data: string;
} {
  const data = JSON.parse(dataJson === '' ? '{}' : dataJson) as JsonValue;
  if (!isJsonObject(data) || !Array.isArray(data[SEED])) return { seed: [], data: dataJson };
  const { [SEED]: steps, ...rest } = data;
  return { seed: steps.filter(isJsonObject), data: JSON.stringify(rest) };
}
