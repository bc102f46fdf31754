import { chatCompletions } from './chat-completions.ts';
import type { Dialect } from './dialect.ts';
import { messages } from './messages.ts';
import { responses } from './responses.ts';

/** The wire formats that are served. */
export const DIALECTS: readonly Dialect[] = [chatCompletions, responses, messages];

/** The dialect that supports counting the tokens of a request. */
export const COUNTED = messages;

/**
 * Returns the wire format for errors of a request: messages for requests to its path or with the header
 * `anthropic-version`, else chat completions.
 */
export function dialectOf(path: string, headers: Readonly<Record<string, unknown>>): Dialect {
  const isAnthropic = path.startsWith(messages.path) || headers['anthropic-version'] !== undefined;
  return isAnthropic ? messages : chatCompletions;
}
