/** A model's wish to call a tool. */
export interface ToolUse {
  /** The provider's id of the wish, which its result names. */
  readonly id: string;
  readonly tool: string;
  /** As the model wrote them; may be no JSON at all. */
  readonly argumentsJson: string;
}

/** A turn of the conversation that a model is shown. */
export type ChatTurn =
  | {
      readonly role: 'system' | 'user';
      readonly text: string;
      /** Why the runtime, and nobody else, said it; such turns are for the model alone. */
      readonly hidden?: string;
    }
  | { readonly role: 'assistant'; readonly text: string; readonly toolUses?: readonly ToolUse[] }
  | { readonly role: 'tool'; readonly results: readonly ToolUseResult[] };

/** What came of a wish. */
export interface ToolUseResult {
  readonly id: string;
  readonly text: string;
  readonly isError: boolean;
}

/** A tool as a model is told of it. */
export interface ToolOffer {
  readonly name: string;
  readonly description: string;
  /** JSON Schema of the arguments, as text. */
  readonly inputSchemaJson: string;
}

/** One model call as an agent asks for it: plain JSON, since its digest is journaled. */
export interface LlmRequest {
  /** Catalog alias. */
  readonly model: string;
  readonly messages: readonly ChatTurn[];
  /** Left out when there are none. */
  readonly tools?: readonly ToolOffer[];
  /** The tool that the answer must call; left out when the model may choose. */
  readonly toolChoice?: string;
  readonly temperature?: number;
  readonly maxOutputTokens?: number;
  /** Ask for one JSON object. */
  readonly json: boolean;
  /** An empty answer fails the call with `llm_empty`. */
  readonly requireContent: boolean;
  /** Longest wait for one attempt. */
  readonly timeoutMs?: number;
}

/** What a model call came to: plain JSON, since it is journaled. */
export type LlmOutcome =
  | {
      readonly kind: 'answer';
      /** Empty when the model said nothing. */
      readonly text: string;
      /** Left out when it wants none called. */
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

/** Hears what a model says while it says it; nothing depends on it. */
export interface DeltaListener {
  /** The call is made, or made again: what was said is said from its beginning. */
  begun(): void;
  /** An attempt began, from 1. */
  attemptStarted(attempt: number): void;
  /** The model said the next piece of it. */
  said(text: string): void;
}

/** A piece of an attempt's text and its place there, in bytes of UTF-8. */
export interface TextPiece {
  readonly attempt: number;
  readonly textOffset: number;
  readonly textDelta: string;
}
