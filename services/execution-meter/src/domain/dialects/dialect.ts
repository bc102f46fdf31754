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
 * A wire format of model requests (AP-2). Reads the limits of a request, sets the fields that the meter controls, and
 * reads the parts of an answer from its events. All other fields of requests and events are passed on unchanged, except
 * ids of input items that the provider did not issue, which are removed.
 */
export interface Dialect {
  /** The API of the providers that support the dialect. */
  readonly api: ProviderApi;
  /** Request path below the base URL of the provider. */
  readonly path: string;
  /** Whether later requests can refer to earlier answers by id. */
  readonly issuesIds?: true;
  /**
   * Reads the prompt and the limits of a request.
   * @throws InvalidRequestError NATIVE_FIELD_NOT_ALLOWED, HOSTED_TOOL_NOT_ALLOWED
   */
  read(body: JsonObject): BoundedRequest;
  /** Returns the body for the provider. */
  bodyFor(native: NativeChat, change: BodyChange): JsonObject;
  /** Returns the part of the answer that an event of a stream contains. */
  partOf(event: Fields): AnswerPart;
  /** Returns the complete answer to a request without streaming, as one part. */
  wholeOf(answer: Fields): AnswerPart;
  /**
   * Reads the usage that a provider reported, merged from all events of the answer so far; undefined when the usage is
   * incomplete or implausible.
   */
  readUsage(usage: Fields): TokenUsage | undefined;
  /** Returns the events that end the stream of an answer that has exceeded its limit. */
  cut(cut: CutAnswer): readonly object[];
}

/** The fields of a native request that the meter reads: its prompt, its limits, and whether the answer is streamed. */
export interface BoundedRequest {
  /**
   * The prompt as the meter counts it: texts, images and documents. The texts are at least as long as the text that the
   * provider tokenizes.
   */
  readonly messages: readonly ChatMessage[];
  readonly tools: readonly unknown[];
  /** Maximum number of tokens that the provider adds to the prompt. */
  readonly addedTokens: bigint;
  /** Cache writes that the request can cause. */
  readonly cacheWrites: CacheWrites;
  /** Ids of earlier answers; undefined in dialects without them. */
  readonly references?: References;
  readonly maxOutputTokens: bigint | undefined;
  readonly stream: boolean;
  /** Whether the caller wants the usage in the stream. */
  readonly includeUsage: boolean;
}

/** Values that the meter sets in the body of a request. */
export interface BodyChange {
  readonly model: ModelEntry;
  readonly maxOutputTokens: bigint;
  /** Whether the provider may keep the answer. */
  readonly mayStore: boolean;
}

/** The part of an answer that one event contains. */
export interface AnswerPart {
  /**
   * True if the event shows that the provider has begun an answer; the field may be absent in parts of later events.
   */
  readonly isAnswer?: boolean;
  readonly text?: string;
  /** Content that is neither text nor a tool call. */
  readonly otherContent?: string;
  readonly toolUses?: readonly ToolUsePart[];
  /** Thinking and texts with their positions, in dialects in which later requests must repeat the thinking. */
  readonly blocks?: readonly BlockPart[];
  /** The finish reason as the provider reported it. */
  readonly finishReason?: string | undefined;
  /** The finish reason converted to a value of the platform; undefined when the provider's value is unknown. */
  readonly endReason?: EndReason | undefined;
  readonly responseId?: unknown;
  readonly model?: unknown;
  /** Ids of items of the answer, to which later requests can refer. */
  readonly itemIds?: readonly string[];
  /** Usage as the provider reports it; counts of a later part override those of an earlier part. */
  readonly usage?: unknown;
  /** Whether the provider ended the answer with an error. */
  readonly hasFailed?: boolean;
  /** Whether this is the last event of the answer, which the caller receives only after the settlement. */
  readonly isLast?: boolean;
  /** Whether the event only reports the usage; callers that did not request the usage do not receive it. */
  readonly isForMeter?: boolean;
}

/** The part of a block, other than a tool call, that one event contains. */
export interface BlockPart {
  /** Position of the block in the answer. */
  readonly index: number;
  readonly text?: string;
  /** Text to append to each field of the thinking block. */
  readonly thinking?: ThinkingBlock;
}

/** The part of a tool call that one event contains. */
export interface ToolUsePart {
  /** Position of the call in the answer; if undefined, the part starts a new call after the calls so far. */
  readonly index: number | undefined;
  readonly id: string;
  readonly tool: string;
  readonly argumentsJson: string;
}

/** An answer that exceeded its limit. */
export interface CutAnswer {
  /** The event with which the answer exceeded the limit. */
  readonly last: Fields;
  readonly responseId: string;
  readonly model: string;
}
