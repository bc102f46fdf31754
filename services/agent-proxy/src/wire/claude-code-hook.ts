import {
  canonicalJson,
  InvalidRequestError,
  isJsonObject,
  type JsonObject,
  type JsonValue,
  omitUndefined,
  parseJsonStrict,
  sha256Hex,
} from '@writ/kernel';

/** A tool call that Claude Code or Codex is about to execute, as reported by its `PreToolUse` hook. */
export interface HookedCall {
  readonly tool: string;
  /** RFC 8785 form of its input. */
  readonly argumentsJson: string;
  /** The id that the model gave the call. */
  readonly toolUseId: string;
}

/** The report of the client about a call that it has executed. */
export interface HookedResult {
  readonly call: HookedCall;
  readonly status: 'ok' | 'failed';
  /** SHA-256 of the result as canonical JSON. */
  readonly sha256: string;
  readonly bytes: number;
}

/** The verdict on a call: whether the client executes it. */
export interface HookVerdict {
  readonly decision: 'allow' | 'deny';
  readonly reason: string;
  /** The input to execute in place of the proposed one; undefined when it is unchanged. */
  readonly updatedInput?: JsonObject | undefined;
}

const MAX_DEPTH = 64;

/**
 * Parses the body of a hook.
 * @throws InvalidRequestError HOOK_BODY_INVALID; what parseJsonStrict throws
 */
export function readHookBody(body: Uint8Array<ArrayBuffer>): JsonObject {
  const limits = { field: 'body', maxBytes: body.byteLength, maxDepth: MAX_DEPTH };
  const value = parseJsonStrict(body, limits);
  if (isJsonObject(value)) return value;
  throw invalid('body', 'must be a JSON object');
}

/**
 * Returns the session and sub-agent of a hook as the headers that the model calls of Claude Code use, so that the hook
 * is assigned to the same run and agent (AP-1, AP-6).
 */
export function hookHeadersOf({
  session_id: session,
  agent_id: agent,
}: JsonObject): Readonly<Record<string, string>> {
  return {
    ...(isName(session) && { 'x-claude-code-session-id': session }),
    ...(isName(agent) && { 'x-claude-code-agent-id': agent }),
  };
}

/**
 * Reads the call of a hook.
 * @throws InvalidRequestError HOOK_BODY_INVALID for another event and for a missing or invalid field
 */
export function hookedCallOf(body: JsonObject): HookedCall {
  const { hook_event_name: event, tool_name: tool, tool_use_id: id, tool_input: input } = body;
  if (event !== 'PreToolUse' && !isResult(body)) {
    throw invalid('hook_event_name', 'must be PreToolUse, PostToolUse or PostToolUseFailure');
  }
  if (!isText(tool, 128)) throw invalid('tool_name', 'must be a string of 1 to 128 characters');
  if (!isText(id, 256)) throw invalid('tool_use_id', 'must be a string of 1 to 256 characters');
  if (!isJsonObject(input)) throw invalid('tool_input', 'must be a JSON object');
  return { tool, argumentsJson: canonicalJson(input), toolUseId: id };
}

/** Whether a hook reports an executed call; the answer to such a hook has no effect. */
export function isResult({ hook_event_name: event }: JsonObject): boolean {
  return event === 'PostToolUse' || event === 'PostToolUseFailure';
}

/**
 * Reads the result of a call from the hook that follows its execution. Only the digest and size of the result are kept.
 * @throws InvalidRequestError HOOK_BODY_INVALID for a missing or invalid field
 */
export function hookedResultOf(body: JsonObject): HookedResult {
  const { hook_event_name: event, tool_response: response = null, error = null } = body;
  const result = canonicalJson(event === 'PostToolUse' ? response : error);
  return {
    call: hookedCallOf(body),
    status: event === 'PostToolUse' ? 'ok' : 'failed',
    sha256: sha256Hex(result),
    bytes: Buffer.byteLength(result),
  };
}

/** The answer that Claude Code reads. */
export function hookAnswer({ decision, reason, updatedInput }: HookVerdict): JsonObject {
  return {
    hookSpecificOutput: {
      hookEventName: 'PreToolUse',
      permissionDecision: decision,
      permissionDecisionReason: reason,
      ...omitUndefined({ updatedInput }),
    },
  };
}

/** Whether a value may name a session or a sub-agent. */
export function isName(value: JsonValue | undefined): value is string {
  return typeof value === 'string' && /^[\w-]{1,256}$/.test(value);
}

function isText(value: JsonValue | undefined, maxLength: number): value is string {
  return typeof value === 'string' && value !== '' && value.length <= maxLength;
}

function invalid(field: string, rule: string): InvalidRequestError {
  return new InvalidRequestError('HOOK_BODY_INVALID', `${field} of the hook ${rule}.`, { field });
}
