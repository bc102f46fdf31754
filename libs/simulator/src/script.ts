/** A JSON value in a script. */
export type Json =
  | null
  | boolean
  | number
  | string
  | readonly Json[]
  | { readonly [key: string]: Json };

/**
 * Conditions on a request; all conditions that are set must be met. They depend only on the request, so that a
 * restarted simulator gives the same answers.
 */
export interface When {
  /** The requested model; a trailing `*` is a wildcard. */
  readonly model?: string;
  /** Text or texts that the system prompt contains. */
  readonly system_contains?: string | readonly string[];
  /** Text or texts that the last user message contains. */
  readonly user_contains?: string | readonly string[];
  /** Role of the last message. */
  readonly last_role?: 'system' | 'user' | 'assistant' | 'tool';
  /** Number of assistant messages in the conversation. */
  readonly turn?: number;
  /** Whether a tool message follows the last user message. */
  readonly has_tool_result?: boolean;
  /** Text or texts that the last tool message after the last user message contains. */
  readonly tool_result_contains?: string | readonly string[];
  /** Values at dotted paths of the JSON in the last user message; -1 is a list's last item. */
  readonly json_path?: Readonly<Record<string, Json>>;
  /** Dotted paths that exist in the JSON of the last user message. */
  readonly json_has?: readonly string[];
}

/** A tool call in a reply. String `arguments` are sent unchanged, even when they are not JSON. */
export interface ScriptedToolCall {
  readonly name: string;
  readonly arguments?: Readonly<Record<string, Json>> | string;
  readonly id?: string;
}

/**
 * Token usage that a reply reports. Omitted counts of prompt and completion tokens are estimated from the texts;
 * omitted counts of cached and reasoning tokens are 0.
 */
export interface ScriptedUsage {
  readonly prompt_tokens?: number;
  readonly completion_tokens?: number;
  readonly cached_tokens?: number;
  readonly reasoning_tokens?: number;
}

/**
 * The answer to a request and options for its delivery. Exactly one of `json`, `text`, `tool_calls` (optionally with
 * `text`) and `error` is required, unless `garbage` is set, which can be combined with content but not with `error`.
 * Texts may contain `${json:path}` and `${tool:path}`, values from the JSON of the last user message or of a tool
 * message after it, where `|` separates alternative paths, and `${value:name}`, one of the script's `values`. A text
 * that consists of one placeholder keeps the type of its value.
 */
export interface Reply {
  /** Sent as JSON text. */
  readonly json?: Json;
  readonly text?: string;
  readonly tool_calls?: readonly ScriptedToolCall[];
  /** An HTTP error with an OpenAI error body. `retry_after` is in seconds. */
  readonly error?: {
    readonly status: number;
    readonly message: string;
    readonly code?: string;
    readonly retry_after?: number;
  };
  /** Raw text instead of the body; in a stream with content, after its first chunk. */
  readonly garbage?: string;
  readonly usage?: ScriptedUsage;
  readonly finish_reason?: 'stop' | 'length' | 'tool_calls' | 'content_filter';
  /** Milliseconds before the first byte. */
  readonly delay_ms?: number;
  /** Milliseconds before each chunk of a stream. */
  readonly chunk_delay_ms?: number;
  /** Characters in one chunk of a stream; default 24. */
  readonly chunk_size?: number;
  /** Drops the connection after this many content chunks; without a stream, in the middle of the body. */
  readonly cut_after_chunks?: number;
  /** Mandatory parts that the answer leaves out. */
  readonly omit?: readonly ('usage' | 'finish_reason' | 'done')[];
}

/** A condition and its answer. The first entry that matches answers. */
export interface ScriptEntry {
  readonly when?: When;
  /** Limit of requests that this entry answers; further ones fall through to later entries. */
  readonly times?: number;
  readonly reply: Reply;
}

/** The expected end of a run that this script answers; see docs/reference/stop-reasons.md. */
export interface ScriptExpectation {
  readonly status: 'ok' | 'partial' | 'stopped';
  readonly stop_reason: string;
}

/** The decision of the human approver when the run requires approval. */
export interface ScriptedPerson {
  readonly decision: 'approve' | 'approve_edited' | 'reject';
  /** Arguments that replace the proposed ones. */
  readonly arguments?: Readonly<Record<string, Json>>;
}

/** A scenario: the scripted answers of a model. */
export interface Script {
  /** Requests for the model `sim:<name>` use this script. */
  readonly name: string;
  readonly description?: string;
  readonly expect?: ScriptExpectation;
  readonly person?: ScriptedPerson;
  /** Name of the agent that the scenario starts; default: the example's agent. */
  readonly agent?: string;
  /** Texts with placeholders that replies refer to as `${value:name}`. */
  readonly values?: Readonly<Record<string, string>>;
  readonly entries: readonly ScriptEntry[];
}
