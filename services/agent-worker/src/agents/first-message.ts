import type { Message } from '../domain/agent/message.ts';
import type { AgentContext } from '../runtime/agent.ts';

/** Returns the message that the agent was started with; stops the agent without one. */
export function firstMessage(ctx: AgentContext, [message]: readonly Message[]): Message {
  if (message !== undefined) return message;
  return ctx.stop({
    stopReason: 'error:no_message',
    phase: 'worker',
    detail: 'The agent has no inbox message.',
  });
}

/** Formats a message as one text: its text, followed by its structured payload. */
export function textOf({ text, dataJson }: Pick<Message, 'text' | 'dataJson'>): string {
  return dataJson === '' || dataJson === '{}' ? text : `${text}\n\n${dataJson}`;
}
