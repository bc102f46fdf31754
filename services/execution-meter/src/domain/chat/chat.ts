/** Who speaks in a conversation. */
export type ChatRole = 'system' | 'user' | 'assistant' | 'tool';

/** A model's wish to call a tool. */
export interface ToolUse {
  /** The provider's id of the wish; results refer to it. */
  readonly id: string;
  readonly tool: string;
  /** As the model wrote them; may be no valid JSON. */
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
  | { readonly type: 'image'; readonly url: string };

/** One turn of a conversation. */
export interface ChatMessage {
  readonly role: ChatRole;
  readonly parts: readonly ChatPart[];
}

/** A tool that the model may ask for. */
export interface ChatTool {
  readonly name: string;
  readonly description: string;
  /** JSON Schema of its arguments. */
  readonly inputSchema: Readonly<Record<string, unknown>>;
}

/** Whether the model must call a tool, and which. */
export type ToolChoice = 'auto' | 'none' | 'required' | { readonly tool: string };

/** What a model is asked, in the words of no provider. */
export interface ChatRequest {
  readonly messages: readonly ChatMessage[];
  readonly tools: readonly ChatTool[];
  /** Undefined leaves it to the provider. */
  readonly toolChoice: ToolChoice | undefined;
  /** Undefined leaves it to the provider. */
  readonly temperature: number | undefined;
  /** The answer is one JSON object. */
  readonly json: boolean;
}

/** Why a model stopped. */
export type EndReason = 'end_turn' | 'tool_use' | 'max_tokens' | 'content_filter';

/** What a model answered. */
export interface ChatAnswer {
  readonly text: string;
  readonly toolUses: readonly ToolUse[];
  readonly endReason: EndReason;
  /** The provider's name of the model that answered. */
  readonly providerModel: string;
}

/** Whether an answer says nothing at all, neither in words nor by asking for a tool. */
export function isEmptyAnswer({ text, toolUses }: ChatAnswer): boolean {
  return text.trim() === '' && toolUses.length === 0;
}
