import type { ChatTurn, ToolOffer, ToolUse } from './model-call.ts';

/** A model call with a whole conversation. */
export interface ModelCall {
  /**
   * The conversation, oldest turn first. The instructions of the manifest precede it unless it starts with a system
   * turn.
   */
  readonly turns: readonly ChatTurn[];
  /** The tools that the model may call. Default: none. */
  readonly tools?: readonly ToolOffer[];
  /** The tool that the model must call. Default: the model chooses. */
  readonly toolChoice?: string;
  /** Catalog alias of a model that the manifest allows. Default: the model of the manifest. */
  readonly model?: string;
  /** Sampling temperature, 0 to 2. Default: that of the manifest, or 0 if the manifest sets none. */
  readonly temperature?: number;
  /** Maximum number of tokens of the answer. Default: that of the manifest. */
  readonly maxOutputTokens?: number;
  /** Requests one JSON object as the response. Default: `json_mode` of the manifest. */
  readonly json?: boolean;
}

/** The answer to a {@link ModelCall}. */
export interface ModelAnswered {
  readonly ok: true;
  /** Empty when the model only called tools. */
  readonly text: string;
  /** The requested tool calls, in order. */
  readonly toolUses: readonly ToolUse[];
  /** The answer as a turn of the conversation. */
  readonly turn: ChatTurn;
  /** `max_tokens` for an answer that was cut off. */
  readonly endReason: 'end_turn' | 'tool_use' | 'max_tokens' | 'content_filter' | 'unknown';
  /** Whether the budget of the agent is nearly used up (EM-5). */
  readonly nearBudget: boolean;
  /** Id of the model call; proposals refer to it as their origin. */
  readonly callId: string;
}

/** The result of a {@link ModelCall}. */
export type ModelReply =
  | ModelAnswered
  | {
      readonly ok: false;
      /** `llm_timeout`, `llm_empty`, `provider_error:…`, `budget_exhausted:…` or `error:…`. */
      readonly error: string;
      /** One sentence. */
      readonly message: string;
    };
