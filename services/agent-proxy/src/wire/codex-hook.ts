import type { JsonObject } from '@writ/kernel';
import { type HookVerdict, hookAnswer, isName } from './claude-code-hook.ts';

/**
 * The session and the sub-agent that a hook of Codex states, as the headers by which its model calls name them. Its hooks
 * have the other fields of those of Claude Code.
 */
export function codexHookHeadersOf({
  session_id: session,
  agent_id: agent,
}: JsonObject): Readonly<Record<string, string>> {
  return {
    ...(isName(session) && { 'session-id': session }),
    ...(isName(agent) && { 'thread-id': agent, 'x-openai-subagent': 'hook' }),
  };
}

/** The answer that Codex reads. It supports `allow` with another input only, and executes the call after an empty answer. */
export function codexHookAnswer(verdict: HookVerdict): JsonObject {
  const { decision, updatedInput } = verdict;
  return decision === 'allow' && updatedInput === undefined ? {} : hookAnswer(verdict);
}
