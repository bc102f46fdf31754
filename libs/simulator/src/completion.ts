import { type ChatRequest, tokensOf } from './chat-request.ts';
import type { Conversation } from './match.ts';
import { fill } from './placeholder.ts';
import type { Reply } from './script.ts';

/** A tool call of the answer. */
export interface CompletionToolCall {
  readonly id: string;
  readonly name: string;
  readonly arguments: string;
}

/** Token usage as OpenAI reports it. */
export interface CompletionUsage {
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
  readonly total_tokens: number;
  readonly prompt_tokens_details: { readonly cached_tokens: number };
  readonly completion_tokens_details: { readonly reasoning_tokens: number };
}

/** A completed answer, before it is encoded as a body or as chunks. */
export interface Completion {
  readonly id: string;
  readonly model: string;
  /** Seconds since 1970. */
  readonly created: number;
  /** Null when the answer consists of tool calls only. */
  readonly text: string | null;
  readonly toolCalls: readonly CompletionToolCall[];
  /** Null when the reply omits it. */
  readonly finishReason: string | null;
  /** Absent when the reply omits it. */
  readonly usage?: CompletionUsage;
}

/** Characters per token, as in {@link tokensOf}. */
const CHARACTERS_PER_TOKEN = 4;

/** A request with the values that placeholders of its reply may refer to. */
interface AnsweredRequest {
  readonly request: ChatRequest;
  readonly conversation: Conversation;
  /** Values of the script. */
  readonly values?: Readonly<Record<string, string>> | undefined;
}

/**
 * Builds the answer to a request from a scripted reply. Ids are derived from the conversation, so that a restarted
 * simulator returns the same ids. Text over the request's token limit is truncated, unless the reply sets
 * `finish_reason`.
 * @throws PlaceholderError when the request lacks a value that the reply refers to
 */
export function completionOf(
  reply: Reply,
  { request, conversation, values = {} }: AnsweredRequest,
  now: Date,
): Completion {
  const sources = { json: conversation.json, tool: conversation.toolJson, values };
  const content =
    reply.json === undefined
      ? fill(reply.text ?? null, sources)
      : JSON.stringify(fill(reply.json, sources));
  const whole = content === null ? null : asText(content);
  const toolCalls = (reply.tool_calls ?? []).map((call, index) => ({
    id: call.id ?? `call_${request.digest.slice(0, 16)}_${index}`,
    name: call.name,
    arguments: asText(fill(call.arguments ?? {}, sources)),
  }));
  const limit = (request.maxTokens ?? Infinity) * CHARACTERS_PER_TOKEN;
  const cut = reply.finish_reason === undefined && whole !== null && whole.length > limit;
  const text = cut ? whole.slice(0, limit) : whole;
  const ending = cut ? 'length' : toolCalls.length > 0 ? 'tool_calls' : 'stop';
  return {
    id: `chatcmpl-${request.digest.slice(0, 24)}`,
    model: request.model,
    created: Math.floor(now.getTime() / 1000),
    text,
    toolCalls,
    finishReason: reply.omit?.includes('finish_reason') ? null : (reply.finish_reason ?? ending),
    ...(reply.omit?.includes('usage') ? {} : { usage: usageOf(reply, request, text, toolCalls) }),
  };
}

function usageOf(
  { usage = {} }: Reply,
  request: ChatRequest,
  text: string | null,
  toolCalls: readonly CompletionToolCall[],
): CompletionUsage {
  const output = [text ?? '', ...toolCalls.flatMap((call) => [call.name, call.arguments])].join('');
  const prompt = usage.prompt_tokens ?? request.promptTokens;
  const completion = usage.completion_tokens ?? tokensOf(output);
  return {
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: prompt + completion,
    prompt_tokens_details: { cached_tokens: usage.cached_tokens ?? 0 },
    completion_tokens_details: { reasoning_tokens: usage.reasoning_tokens ?? 0 },
  };
}

function asText(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}
