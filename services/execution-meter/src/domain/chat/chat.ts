import type { JsonObject } from '@writ/kernel';

/** Author role of a message. */
export type ChatRole = 'system' | 'user' | 'assistant' | 'tool';

/** Tool call requested by a model. */
export interface ToolUse {
  /** Id assigned by the provider; tool results reference it. */
  readonly id: string;
  readonly tool: string;
  /** As written by the model; possibly invalid JSON. */
  readonly argumentsJson: string;
}

/** One part of a message. */
export type ChatPart =
  | { readonly type: 'text'; readonly text: string }
  | ({ readonly type: 'tool_use' } & ToolUse)
  | {
      readonly type: 'tool_result';
      readonly id: string;
      readonly content: string;
      readonly isError: boolean;
    }
  | { readonly type: 'image'; readonly url: string }
  /** A file in a native request. Its encoded content is also part of the text of the message. */
  | { readonly type: 'document' };

/** One turn of a conversation. */
export interface ChatMessage {
  readonly role: ChatRole;
  readonly parts: readonly ChatPart[];
}

/** A tool that the model can call. */
export interface ChatTool {
  readonly name: string;
  readonly description: string;
  /** JSON Schema of its arguments. */
  readonly inputSchema: Readonly<Record<string, unknown>>;
}

/** Whether the model may, must or must not call a tool, or the tool that it must call. */
export type ToolChoice = 'auto' | 'none' | 'required' | { readonly tool: string };

/** Provider-independent request to a model. */
export interface ChatRequest {
  readonly messages: readonly ChatMessage[];
  readonly tools: readonly ChatTool[];
  /** Undefined uses the default of the provider. */
  readonly toolChoice: ToolChoice | undefined;
  /** Undefined uses the default of the provider. */
  readonly temperature: number | undefined;
  /** Whether the answer must be one JSON object. */
  readonly json: boolean;
  /** Maximum number of tokens that the provider adds to the prompt; default: 0. */
  readonly addedTokens?: bigint;
  /** None by default. */
  readonly cacheWrites?: CacheWrites;
  /**
   * The request in the format of the provider. If it is set, this request is sent, and the fields above are used only
   * to estimate tokens and cost, and for telemetry.
   */
  readonly native?: NativeChat;
}

/** Ids issued by the provider that a request refers to. */
export interface References {
  /** The response that the conversation continues. */
  readonly previousId: string | undefined;
  /** Items of earlier answers; if `stored` is set, the provider adds the content of the item to the prompt. */
  readonly items: readonly { readonly id: string; readonly stored: boolean }[];
}

/** Ids that a provider issued in an answer. */
export interface IssuedIds {
  readonly responseId: string;
  readonly itemIds: readonly string[];
}

/** A wire format of model requests. */
export type DialectName = 'chat_completions' | 'responses' | 'messages';

/**
 * Cache writes that a request can cause: none, writes with a lifetime of minutes, or writes with a lifetime of an hour.
 */
export type CacheWrites = 'none' | 'short' | 'long';

/** A request in a wire format of providers (AP-2). */
export interface NativeChat {
  readonly dialect: DialectName;
  readonly body: JsonObject;
  readonly references?: References | undefined;
  /** HTTP headers of the client that are passed on to the provider. */
  readonly headers: Readonly<Record<string, string>>;
  /** Whether the caller wants a stream. */
  readonly stream: boolean;
  /** Whether the caller wants the usage in the stream. */
  readonly includeUsage: boolean;
}

/** Reason why a model stopped. */
export type EndReason = 'end_turn' | 'tool_use' | 'max_tokens' | 'content_filter';

/**
 * Fields of a thinking block as the provider's API returned them, such as the signature that the provider verifies in
 * later requests.
 */
export type ThinkingBlock = Readonly<Record<string, string>>;

/** A block of an answer; a block with `isCall` is the position of the next tool use of the answer. */
export type AnswerBlock =
  | { readonly text: string }
  | { readonly thinking: ThinkingBlock }
  | { readonly isCall: true };

/** Answer of a model. */
export interface ChatAnswer {
  readonly text: string;
  readonly toolUses: readonly ToolUse[];
  /**
   * Text, tool uses and thinking of the answer in their original order; undefined when the answer has no thinking or
   * exceeds a limit.
   */
  readonly blocks?: readonly AnswerBlock[];
  readonly endReason: EndReason;
  /** Name of the answering model at the provider. */
  readonly providerModel: string;
  /** The id of the response at the provider; undefined when the response has no id. */
  readonly responseId?: string;
}

/** Response id and finish reason of an answer as the provider reported them, for traces. */
export interface ProviderTerms {
  /** The response id of the provider. */
  readonly responseId?: string;
  /** The finish reason of the provider, such as `stop`. */
  readonly finishReason?: string;
}

/** Whether an answer contains neither text nor tool calls. */
export function isEmptyAnswer({ text, toolUses }: ChatAnswer): boolean {
  return text.trim() === '' && toolUses.length === 0;
}
