/** A JSON value in a script. */
export type Json =
  | null
  | boolean
  | number
  | string
  | readonly Json[]
  | { readonly [key: string]: Json };

/**
 * What a request must look like for an entry to answer it; everything named must hold. All of it is
 * read from the request alone, so a restarted simulator answers the same.
 */
export interface When {
  /** The model asked for; a trailing `*` stands for any ending. */
  readonly model?: string;
  /** Text, or texts, that the system prompt holds. */
  readonly system_contains?: string | readonly string[];
  /** Text, or texts, that the last user message holds. */
  readonly user_contains?: string | readonly string[];
  /** Who spoke last. */
  readonly last_role?: 'system' | 'user' | 'assistant' | 'tool';
  /** How many assistant messages the conversation has. */
  readonly turn?: number;
  /** Whether a tool has answered since the last user message. */
  readonly has_tool_result?: boolean;
  /** Text, or texts, that the last tool message holds. */
  readonly tool_result_contains?: string | readonly string[];
  /** Values at dotted paths of the JSON in the last user message; -1 is a list's last item. */
  readonly json_path?: Readonly<Record<string, Json>>;
  /** Dotted paths that exist in the JSON of the last user message. */
  readonly json_has?: readonly string[];
}

/** A tool call in a reply. Text `arguments` are sent as they are, also when they are no JSON. */
export interface ScriptedToolCall {
  readonly name: string;
  readonly arguments?: Readonly<Record<string, Json>> | string;
  readonly id?: string;
}

/** Tokens that a reply reports; what is left out is counted from the texts. */
export interface ScriptedUsage {
  readonly prompt_tokens?: number;
  readonly completion_tokens?: number;
  readonly cached_tokens?: number;
  readonly reasoning_tokens?: number;
}

/**
 * How a request is answered. One of `json`, `text`, `tool_calls` (with `text`, if you like),
 * `error` and `garbage` says what; the rest says how. Texts may hold `${json:path}` and
 * `${tool:path}`, taken from the JSON of the last user or tool message; `|` separates paths to try
 * in turn; `${value:name}` is one of the script's `values`. A text that is nothing else keeps the
 * type of what it names.
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
  /** Raw bytes in place of the body; in a stream with content, after its first chunk. */
  readonly garbage?: string;
  readonly usage?: ScriptedUsage;
  readonly finish_reason?: 'stop' | 'length' | 'tool_calls' | 'content_filter';
  /** Milliseconds before the first byte. */
  readonly delay_ms?: number;
  /** Milliseconds before each chunk of a stream. */
  readonly chunk_delay_ms?: number;
  /** Characters in one chunk of a stream; default 24. */
  readonly chunk_size?: number;
  /** Drops the connection after so many content chunks; without a stream, midway in the body. */
  readonly cut_after_chunks?: number;
  /** What the answer lacks although it should be there. */
  readonly omit?: readonly ('usage' | 'finish_reason' | 'done')[];
}

/** One question and its answer. The first entry that fits answers. */
export interface ScriptEntry {
  readonly when?: When;
  /** Answers only the first so many requests that it fits; later ones go to entries below. */
  readonly times?: number;
  readonly reply: Reply;
}

/** How a run that this script answers should end, as in docs/reference/stop-reasons.md. */
export interface ScriptExpectation {
  readonly status: 'ok' | 'partial' | 'stopped';
  readonly stop_reason: string;
}

/** What a person does when an approval comes up during the run. */
export interface ScriptedPerson {
  readonly decision: 'approve' | 'approve_edited' | 'reject';
  /** Arguments that replace the proposed ones. */
  readonly arguments?: Readonly<Record<string, Json>>;
}

/** One scenario: a model that always answers as written. */
export interface Script {
  /** Requests for the model `sim:<name>` use this script. */
  readonly name: string;
  readonly description?: string;
  readonly expect?: ScriptExpectation;
  readonly person?: ScriptedPerson;
  /** Manifest name of the agent that the scenario starts, when it is not the example's own. */
  readonly agent?: string;
  /** Texts with placeholders, for replies to use as `${value:name}`. */
  readonly values?: Readonly<Record<string, string>>;
  readonly entries: readonly ScriptEntry[];
}
