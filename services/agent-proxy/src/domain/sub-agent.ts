import { isJsonObject, type JsonValue } from '@writ/kernel';
import type { Headers } from './conversation.ts';

/** The headers by which clients name a sub-agent and its parent: those of Writ and of Claude Code. */
const NAMES = [
  { agent: 'x-writ-agent', parent: 'x-writ-parent' },
  { agent: 'x-claude-code-agent-id', parent: 'x-claude-code-parent-agent-id' },
] as const;

/**
 * The headers of Codex. Codex sends a thread id with every request; a thread with a parent or a sub-agent kind is a
 * sub-agent.
 */
const CODEX = {
  agent: 'thread-id',
  parent: 'x-codex-parent-thread-id',
  kind: 'x-openai-subagent',
} as const;

/** The ids that a client sends for a sub-agent. Requests of the main agent have no such ids. */
export interface NamedSubAgent {
  readonly id: string;
  /** Empty: the main agent. */
  readonly parent: string;
}

/** Returns the sub-agent that a request comes from; undefined for the main agent (AP-6). */
export function subAgentOf(headers: Headers): NamedSubAgent | undefined {
  for (const { agent, parent } of NAMES) {
    const id = headerOf(headers, agent);
    if (id !== '') return { id, parent: headerOf(headers, parent) };
  }
  const id = headerOf(headers, CODEX.agent);
  const parent = headerOf(headers, CODEX.parent);
  const isChild = parent !== '' || headerOf(headers, CODEX.kind) !== '';
  return isChild && id !== '' ? { id, parent } : undefined;
}

/** Maximum length of the task text of a sub-agent in its review, in characters. */
const MAX_TASK = 2_000;

/**
 * Returns the user texts of a model request as the task of a sub-agent, the last one first, truncated; empty without
 * one. Clients put the context of their program before the task.
 */
export function taskOf(body: JsonValue): string {
  if (!isJsonObject(body)) return '';
  const { input, messages = input } = body;
  if (typeof messages === 'string') return messages.slice(0, MAX_TASK);
  if (!Array.isArray(messages)) return '';
  const texts = messages.flatMap((message) =>
    isJsonObject(message) && message.role === 'user' ? textsOf(message.content) : [],
  );
  return texts.reverse().join('\n').slice(0, MAX_TASK);
}

function textsOf(content: JsonValue | undefined): readonly string[] {
  if (typeof content === 'string') return [content];
  if (!Array.isArray(content)) return [];
  const parts = content.map((part) => (isJsonObject(part) ? part.text : undefined));
  return parts.filter((text) => typeof text === 'string');
}

function headerOf(headers: Headers, name: string): string {
  const value = headers[name];
  return typeof value === 'string' ? value.trim() : '';
}
