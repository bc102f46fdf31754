import type { JsonObject } from '@writ/kernel';
import { type HookVerdict, hookAnswer, isName } from './claude-code-hook.ts';

/**
 * Returns the session and sub-agent of a Codex hook as the headers that the model calls of Codex use. The other fields
 * are the same as in hooks of Claude Code.
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

/**
 * Returns the answer in the format of Codex. Codex accepts `allow` only with a changed input, and executes the call
 * after an empty answer.
 */
export function codexHookAnswer(verdict: HookVerdict): JsonObject {
  const { decision, updatedInput } = verdict;
  return decision === 'allow' && updatedInput === undefined ? {} : hookAnswer(verdict);
}
