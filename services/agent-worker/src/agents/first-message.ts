import type { Message } from '../domain/agent/message.ts';
import type { AgentContext } from '../runtime/agent.ts';

/** The message that an agent was started with; without one it stops. */
export function firstMessage(ctx: AgentContext, [message]: readonly Message[]): Message {
  if (message !== undefined) return message;
  return ctx.stop({
    stopReason: 'error:no_message',
    phase: 'worker',
    detail: 'The agent has no inbox message.',
  });
}

/** A message as one text: its words, and its structured payload below them. */
export function textOf({ text, dataJson }: Pick<Message, 'text' | 'dataJson'>): string {
  return dataJson === '' || dataJson === '{}' ? text : `${text}\n\n${dataJson}`;
}
