/** A tool call that a model requests. */
export interface ToolUse {
  /** The provider's id of the request, which the result refers to. */
  readonly id: string;
  readonly tool: string;
  /** Arguments as the model wrote them; may not be valid JSON. */
  readonly argumentsJson: string;
}

/** A turn of the conversation with a model. */
export type ChatTurn =
  | {
      readonly role: 'system' | 'user';
      readonly text: string;
      /** Why the runtime added this turn. A turn with this field is visible only to the model. */
      readonly hidden?: string;
    }
  | { readonly role: 'assistant'; readonly text: string; readonly toolUses?: readonly ToolUse[] }
  | { readonly role: 'tool'; readonly results: readonly ToolUseResult[] };

/** The result of a requested tool call. */
export interface ToolUseResult {
  readonly id: string;
  readonly text: string;
  readonly isError: boolean;
}

/** A tool as the model sees it. */
export interface ToolOffer {
  readonly name: string;
  readonly description: string;
  /** JSON Schema of the arguments, as text. */
  readonly inputSchemaJson: string;
}

/** A model call. Plain JSON, because its digest is journaled. */
export interface LlmRequest {
  /** Catalog alias. */
  readonly model: string;
  readonly messages: readonly ChatTurn[];
  /** Omitted when there are none. */
  readonly tools?: readonly ToolOffer[];
  /** The tool that the model must call; default: the model chooses. */
  readonly toolChoice?: string;
  readonly temperature?: number;
  readonly maxOutputTokens?: number;
  /** Requests one JSON object. */
  readonly json: boolean;
  /** An empty answer fails the call with `llm_empty`. */
  readonly requireContent: boolean;
  /** Timeout of one attempt. */
  readonly timeoutMs?: number;
  /** `summary` for a call that summarizes the conversation; omitted for all other calls. */
  readonly purpose?: 'summary';
}

/** The result of a model call. Plain JSON, because it is journaled. */
export type LlmOutcome =
  | {
      readonly kind: 'answer';
      /** Empty when the model returned no text. */
      readonly text: string;
      /** Omitted when the model requests no tool calls. */
      readonly toolUses?: readonly ToolUse[];
      readonly endReason: 'end_turn' | 'tool_use' | 'max_tokens' | 'content_filter' | 'unknown';
      readonly nearBudget: boolean;
    }
  | {
      readonly kind: 'failed';
      /** `llm_timeout`, `llm_empty`, `provider_error:…`, `budget_exhausted:…` or `error:…`. */
      readonly stopReason: string;
      /** One sentence. */
      readonly detail: string;
    };

/** The result of a model call, and the id of the call. */
export type ModelAnswer = LlmOutcome & { readonly callId: string };
