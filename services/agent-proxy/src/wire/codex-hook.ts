import type { JsonObject } from '@writ/kernel';
import { type HookVerdict, hookAnswer, isName } from './claude-code-hook.ts';

/**
 * The session and the sub-agent that a hook of Codex states, as the headers by which its model calls name them. The
 * other fields are those of Claude Code.
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
 * The answer that Codex reads. It accepts `allow` only with a changed input, and executes the call after an empty
 * answer.
 */
export function codexHookAnswer(verdict: HookVerdict): JsonObject {
  const { decision, updatedInput } = verdict;
  return decision === 'allow' && updatedInput === undefined ? {} : hookAnswer(verdict);
}
