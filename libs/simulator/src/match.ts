import { isDeepStrictEqual } from 'node:util';
import type { ChatRequest } from './chat-request.ts';
import { valueAt } from './placeholder.ts';
import type { Script, When } from './script.ts';

/** A request, prepared for matching. */
export interface Conversation {
  readonly model: string;
  readonly system: string;
  /** Text of the last user message. */
  readonly user: string;
  readonly lastRole: string;
  /** Number of assistant messages in the request. */
  readonly turn: number;
  /** Text of the last tool message since the last user message. */
  readonly toolResult: string | undefined;
  /** The last user message parsed as JSON; undefined when it is not JSON. */
  readonly json: unknown;
  /** `toolResult` parsed as JSON; undefined when it is not JSON. */
  readonly toolJson: unknown;
}

/** Prepares a request for matching. */
export function conversationOf({ model, messages }: ChatRequest): Conversation {
  const withRole = (role: string) => messages.filter((message) => message.role === role);
  const lastUser = messages.findLastIndex(({ role }) => role === 'user');
  const user = messages[lastUser]?.text ?? '';
  const toolResult = messages.slice(lastUser + 1).findLast(({ role }) => role === 'tool')?.text;
  return {
    model,
    system: withRole('system')
      .map(({ text }) => text)
      .join('\n'),
    user,
    lastRole: messages.at(-1)?.role ?? '',
    turn: withRole('assistant').length,
    toolResult,
    json: parse(user),
    toolJson: parse(toolResult ?? ''),
  };
}

/**
 * Returns the index of the first entry that matches and is not used up, or undefined. The result
 * depends only on the conversation and on `used`, which returns how often an entry has answered.
 */
export function matchEntry(
  script: Script,
  conversation: Conversation,
  used: (entry: number) => number,
): number | undefined {
  const index = script.entries.findIndex(
    ({ when = {}, times }, entry) =>
      matches(when, conversation) && (times === undefined || used(entry) < times),
  );
  return index === -1 ? undefined : index;
}

/** Describes the request, for errors about requests that cannot be answered. */
export function describeConversation(conversation: Conversation): string {
  const { model, turn, lastRole, toolResult, json, user } = conversation;
  const steps = valueAt(json, 'state_summary.steps_completed');
  return [
    `model ${JSON.stringify(model)}`,
    `turn ${turn}`,
    `last role ${lastRole}`,
    `${toolResult === undefined ? 'no' : 'a'} tool result`,
    ...(steps === undefined ? [] : [`state_summary.steps_completed ${JSON.stringify(steps)}`]),
    `user message ${JSON.stringify(user.slice(0, 200))}`,
  ].join(', ');
}

function matches(when: When, conversation: Conversation): boolean {
  const { json, toolResult } = conversation;
  return (
    (when.model === undefined || modelMatches(when.model, conversation.model)) &&
    containsAll(conversation.system, when.system_contains) &&
    containsAll(conversation.user, when.user_contains) &&
    (when.last_role === undefined || when.last_role === conversation.lastRole) &&
    (when.turn === undefined || when.turn === conversation.turn) &&
    (when.has_tool_result === undefined || when.has_tool_result === (toolResult !== undefined)) &&
    containsAll(toolResult, when.tool_result_contains) &&
    Object.entries(when.json_path ?? {}).every(([path, value]) =>
      isDeepStrictEqual(valueAt(json, path), value),
    ) &&
    (when.json_has ?? []).every((path) => valueAt(json, path) !== undefined)
  );
}

function modelMatches(pattern: string, model: string): boolean {
  return pattern.endsWith('*') ? model.startsWith(pattern.slice(0, -1)) : model === pattern;
}

function containsAll(
  text: string | undefined,
  expected: string | readonly string[] | undefined,
): boolean {
  return [expected ?? []].flat().every((part) => text?.includes(part) === true);
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // Expected: most messages are plain text and not JSON.
    return undefined;
  }
}
