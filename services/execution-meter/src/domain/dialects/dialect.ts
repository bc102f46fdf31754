import type { Fields, JsonObject } from '@writ/kernel';
import type { ModelEntry, ProviderApi } from '../catalog/catalog.ts';
import type {
  CacheWrites,
  ChatMessage,
  EndReason,
  NativeChat,
  References,
  ThinkingBlock,
} from '../chat/chat.ts';
import type { TokenUsage } from '../ledger/spending.ts';

/**
 * A wire format of model requests (AP-2): what limits a request, what the meter changes in it, and what an event adds
 * to the answer. Everything else in a request or an event is passed on unchanged.
 */
export interface Dialect {
  /** The API of the providers that speak it. */
  readonly api: ProviderApi;
  /** Its path below the base URL of the provider. */
  readonly path: string;
  /** Whether later requests can refer to its answers by their ids. */
  readonly issuesIds?: true;
  /**
   * Reads what limits a request.
   * @throws InvalidRequestError NATIVE_FIELD_NOT_ALLOWED, HOSTED_TOOL_NOT_ALLOWED
   */
  read(body: JsonObject): BoundedRequest;
  /** Returns the body for the provider. */
  bodyFor(native: NativeChat, change: BodyChange): JsonObject;
  /** What an event of a stream adds to the answer. */
  partOf(event: Fields): AnswerPart;
  /** The answer to a request without a stream. */
  wholeOf(answer: Fields): AnswerPart;
  /** Reads the usage of a provider, which may have come in several parts; undefined when it is incomplete or implausible. */
  readUsage(usage: Fields): TokenUsage | undefined;
  /** The events that end a stream which exceeded its limit. */
  cut(cut: CutAnswer): readonly object[];
}

/** The fields of a native request that the meter reads: its prompt, its limits and the form of the answer. */
export interface BoundedRequest {
  /**
   * The prompt as the meter counts it: its texts, which are never shorter than what the provider reads, its images and
   * its documents.
   */
  readonly messages: readonly ChatMessage[];
  readonly tools: readonly unknown[];
  /** Tokens that the provider adds to the prompt, at most. */
  readonly addedTokens: bigint;
  /** Which cache writes the request can cause. */
  readonly cacheWrites: CacheWrites;
  /** Ids of earlier answers; undefined in dialects without them. */
  readonly references?: References;
  readonly maxOutputTokens: bigint | undefined;
  readonly stream: boolean;
  /** Whether the caller wants the usage in the stream. */
  readonly includeUsage: boolean;
}

/** What the meter changes in the body of a request. */
export interface BodyChange {
  readonly model: ModelEntry;
  readonly maxOutputTokens: bigint;
  /** Whether the provider may keep the answer. */
  readonly mayStore: boolean;
}

/** What one event adds to an answer. */
export interface AnswerPart {
  /** True for an event which shows that the provider has begun an answer; later events of the answer may omit it. */
  readonly isAnswer?: boolean;
  readonly text?: string;
  /** Content that is neither text nor a tool call. */
  readonly otherContent?: string;
  readonly toolUses?: readonly ToolUsePart[];
  /** Thinking and texts by their place, in dialects whose later requests must repeat the thinking. */
  readonly blocks?: readonly BlockPart[];
  /** The finish reason in the words of the provider. */
  readonly finishReason?: string | undefined;
  /** The finish reason; undefined when it is unknown. */
  readonly endReason?: EndReason | undefined;
  readonly responseId?: unknown;
  readonly model?: unknown;
  /** Ids of its items, to which later requests can refer. */
  readonly itemIds?: readonly string[];
  /** Usage as the provider reports it; a later part overrides the same counts of an earlier one. */
  readonly usage?: unknown;
  /** Whether the provider ended the answer with an error. */
  readonly hasFailed?: boolean;
  /** Whether it is the last event of the answer, which is sent after the settlement. */
  readonly isLast?: boolean;
  /** Whether it only reports the usage; the caller receives it if it requested the usage. */
  readonly isForMeter?: boolean;
}

/** What one event adds to a block that is no tool call. */
export interface BlockPart {
  /** Position of the block in the answer. */
  readonly index: number;
  readonly text?: string;
  /** Fields of thinking, each of which is appended to. */
  readonly thinking?: ThinkingBlock;
}

/** What one event adds to a tool call. */
export interface ToolUsePart {
  /** Position of the call in the answer; undefined for the next one. */
  readonly index: number | undefined;
  readonly id: string;
  readonly tool: string;
  readonly argumentsJson: string;
}

/** An answer that exceeded its limit. */
export interface CutAnswer {
  /** The event that exceeded it. */
  readonly last: Fields;
  readonly responseId: string;
  readonly model: string;
}
