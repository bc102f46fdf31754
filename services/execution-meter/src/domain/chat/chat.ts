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
  /** A file in a native request, whose bytes are also in its text. */
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

/** Whether the model must call a tool, and which. */
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
  /** Tokens that the provider adds to the prompt, at most; 0 by default. */
  readonly addedTokens?: bigint;
  /** None by default. */
  readonly cacheWrites?: CacheWrites;
  /** The request in the format of the provider; with it, the fields above only measure the prompt. */
  readonly native?: NativeChat;
}

/** What a request refers to by ids that the provider has issued. */
export interface References {
  /** The response that the conversation continues. */
  readonly previousId: string | undefined;
  /** Items of earlier answers; the provider adds the content of `stored` ones. */
  readonly items: readonly { readonly id: string; readonly stored: boolean }[];
}

/** Ids that a provider issued in an answer. */
export interface IssuedIds {
  readonly responseId: string;
  readonly itemIds: readonly string[];
}

/** A wire format of model requests. */
export type DialectName = 'chat_completions' | 'responses' | 'messages';

/** Which cache writes a request can cause: none, some for minutes, or some for an hour. */
export type CacheWrites = 'none' | 'short' | 'long';

/** A request in a wire format of providers (AP-2). */
export interface NativeChat {
  readonly dialect: DialectName;
  readonly body: JsonObject;
  readonly references?: References | undefined;
  /** Headers of the client for the provider. */
  readonly headers: Readonly<Record<string, string>>;
  /** Whether the caller wants a stream. */
  readonly stream: boolean;
  /** Whether the caller wants the usage in the stream. */
  readonly includeUsage: boolean;
}

/** Reason why a model stopped. */
export type EndReason = 'end_turn' | 'tool_use' | 'max_tokens' | 'content_filter';

/** Thinking as the block of its API; with a signature that the provider verifies in later requests. */
export type ThinkingBlock = Readonly<Record<string, string>>;

/** A block of an answer; `isCall` stands for the next one of its tool uses. */
export type AnswerBlock =
  | { readonly text: string }
  | { readonly thinking: ThinkingBlock }
  | { readonly isCall: true };

/** Answer of a model. */
export interface ChatAnswer {
  readonly text: string;
  readonly toolUses: readonly ToolUse[];
  /** The same in the order of its blocks, with its thinking; undefined without thinking, or with too much. */
  readonly blocks?: readonly AnswerBlock[];
  readonly endReason: EndReason;
  /** Name of the answering model at the provider. */
  readonly providerModel: string;
  /** The id of the response at the provider; undefined when it has none. */
  readonly responseId?: string;
}

/** How the provider itself described an answer, for traces. */
export interface ProviderTerms {
  /** Its id of the response. */
  readonly responseId?: string;
  /** Its finish reason, such as `stop`. */
  readonly finishReason?: string;
}

/** Whether an answer contains neither text nor tool calls. */
export function isEmptyAnswer({ text, toolUses }: ChatAnswer): boolean {
  return text.trim() === '' && toolUses.length === 0;
}
