import type { DialectName } from '../chat/chat.ts';
import { chatCompletions } from './chat-completions.ts';
import type { Dialect } from './dialect.ts';
import { messages } from './messages.ts';
import { responses } from './responses.ts';

/** The wire formats of model requests. */
export const DIALECTS: Readonly<Record<DialectName, Dialect>> = {
  chat_completions: chatCompletions,
  responses,
  messages,
};
