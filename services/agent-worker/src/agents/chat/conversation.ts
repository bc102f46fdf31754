import { HistoryRetention, isJsonObject, type JsonObject, type JsonValue } from '@writ/kernel';
import type { Message } from '../../domain/agent/message.ts';
import type { ChatTurn } from '../../domain/calls/model-call.ts';
import { exchangesOf } from '../../domain/context/shorten-conversation.ts';
import { turnsFromSteps } from '../../domain/context/turns-from-steps.ts';
import type { AgentContext, Checkpoint } from '../../runtime/agent.ts';
import { textOf } from '../first-message.ts';
import { partialText } from '../partial-text.ts';

/** Number of turns that are no longer in memory. */
export interface ConversationState {
  /** Turns of earlier runs. */
  readonly earlier: number;
  /** Turns of this run, which are stored with the checkpoints. */
  readonly own: number;
}

/**
 * The conversation of a running agent. Each checkpoint stores the new turns and drops those that
 * the model will not see again, so that neither memory nor checkpoints grow with the turns outside
 * the window.
 */
export class Conversation {
  readonly #head: readonly ChatTurn[];
  #earlier: readonly ChatTurn[];
  #own: ChatTurn[];
  #dropped: ConversationState = { earlier: 0, own: 0 };
  #stored = 0;

  /**
   * @param opened the turns before the first model call
   * @param known number of these turns that are instructions or turns of earlier runs
   */
  constructor(opened: readonly ChatTurn[], known: number) {
    this.#head = exchangesOf(opened.slice(0, known)).head;
    this.#earlier = opened.slice(this.#head.length, known);
    this.#own = opened.slice(known);
  }

  /** Turns in memory, in order. */
  get turns(): readonly ChatTurn[] {
    return [...this.#head, ...this.#earlier, ...this.#own];
  }

  /** Adds a turn. */
  add(turn: ChatTurn): void {
    this.#own.push(turn);
  }

  /** Returns the partial answer of this run: the model's texts and the successful tool results, latest last. */
  draft(): string {
    const tools = new Map<string, string>();
    const found: string[] = [];
    for (const turn of this.#own) {
      if (turn.role === 'assistant') {
        for (const { id, tool } of turn.toolUses ?? []) tools.set(id, tool);
        if (turn.text.trim() !== '') found.push(turn.text.trim());
      }
      if (turn.role !== 'tool') continue;
      for (const { id, text, isError } of turn.results) {
        if (!isError) found.push(`${tools.get(id) ?? 'tool'}: ${text}`);
      }
    }
    return partialText(found);
  }

  /** Sets the turns of this run that the session stores (AG-8). */
  remember(ctx: AgentContext): void {
    ctx.remember([...this.#own], this.#dropped.own);
  }

  /**
   * Drops turns from memory. Returns the turns to store with the checkpoint, and how many turns were dropped.
   * @param spent number of turns after the instructions that are no longer needed
   */
  fold(
    spent: number,
  ): Required<Omit<Checkpoint, 'state'>> & { readonly dropped: ConversationState } {
    const added = this.#own.slice(this.#stored - this.#dropped.own);
    this.#stored += added.length;
    const fromEarlier = Math.min(spent, this.#earlier.length);
    const fromOwn = spent - fromEarlier;
    this.#earlier = this.#earlier.slice(fromEarlier);
    this.#own = this.#own.slice(fromOwn);
    const { earlier, own } = this.#dropped;
    this.#dropped = { earlier: earlier + fromEarlier, own: own + fromOwn };
    return { added, needsFrom: this.#dropped.own, dropped: this.#dropped };
  }

  /** Restores the turns of a checkpoint. */
  restore(dropped: ConversationState, turns: readonly ChatTurn[]): void {
    this.#dropped = dropped;
    this.#earlier = this.#earlier.slice(dropped.earlier);
    this.#own = [...turns];
    this.#stored = dropped.own + turns.length;
  }
}

/**
 * Field of a message's data that contains stored steps. A conversation starts with these steps if no turns are read
 * from the session.
 */
const SEED = 'session_steps';

/** The initial turns of a conversation. */
export interface Opening {
  /** Turns of earlier runs of the session or, if there are none, the stored steps of the message as turns. */
  readonly history: readonly ChatTurn[];
  /** The turn of the message. */
  readonly turn: ChatTurn;
}

/**
 * Starts a conversation with the turns that earlier runs stored in the session or, if there are none,
 * with the stored steps in the message (AG-8).
 */
export async function openConversation(ctx: AgentContext, message: Message): Promise<Opening> {
  const { seed, data } = takeSeed(message.dataJson);
  const turn: ChatTurn = { role: 'user', text: textOf({ text: message.text, dataJson: data }) };
  // A run without PERMANENT retention does not read the history of the session, even if earlier runs stored one.
  const readsHistory = ctx.meta.supervision?.retention === HistoryRetention.PERMANENT;
  const history = readsHistory ? await ctx.recall() : [];
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
