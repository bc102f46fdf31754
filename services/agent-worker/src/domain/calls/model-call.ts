/** A turn of the conversation that a model is shown. */
export interface ChatTurn {
  readonly role: 'system' | 'user' | 'assistant';
  readonly text: string;
}

/** One model call as an agent asks for it: plain JSON, since its digest is journaled. */
export interface LlmRequest {
  /** Catalog alias. */
  readonly model: string;
  readonly messages: readonly ChatTurn[];
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
