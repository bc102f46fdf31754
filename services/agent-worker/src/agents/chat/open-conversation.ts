import { HistoryRetention, isJsonObject, type JsonObject, type JsonValue } from '@writ/kernel';
import type { Message } from '../../domain/agent/message.ts';
import type { ChatTurn } from '../../domain/calls/model-call.ts';
import { turnsFromSteps } from '../../domain/context/turns-from-steps.ts';
import type { AgentContext } from '../../runtime/agent.ts';
import { textOf } from '../first-message.ts';

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
