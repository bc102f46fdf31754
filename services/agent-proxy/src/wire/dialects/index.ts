import { chatCompletions } from './chat-completions.ts';
import type { Dialect } from './dialect.ts';
import { messages } from './messages.ts';
import { responses } from './responses.ts';

/** The wire formats that are served. */
export const DIALECTS: readonly Dialect[] = [chatCompletions, responses, messages];

/** The dialect whose requests can be counted. */
export const COUNTED = messages;

/** The wire format of the errors of a request: that of its path, or of the client. */
export function dialectOf(path: string, headers: Readonly<Record<string, unknown>>): Dialect {
  const isAnthropic = path.startsWith(messages.path) || headers['anthropic-version'] !== undefined;
  return isAnthropic ? messages : chatCompletions;
}
