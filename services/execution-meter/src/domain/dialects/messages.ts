import {
  type Fields,
  fieldsOf,
  isJsonObject,
  type JsonObject,
  type JsonValue,
  listOf,
  textOf,
} from '@writ/kernel';
import type { CacheWrites, ChatMessage, EndReason, ThinkingBlock } from '../chat/chat.ts';
import type { AnswerPart, BoundedRequest, Dialect } from './dialect.ts';
import {
  assertOneOf,
  atMost,
  countOf,
  hostedTool,
  indexOf,
  isSet,
  measured,
  notAllowed,
  outputLimitOf,
} from './fields.ts';

/** Types of the tools that the caller executes: custom tools, and tools whose schema the provider defines. */
const CALLER_TOOL = /^(custom|(bash|text_editor|computer|memory)_\d+)$/;
/** Number of tokens that the provider adds to a prompt: `ADDED_TOKENS` without tools, `ADDED_FOR_TOOLS` with tools. */
const ADDED_TOKENS = 64n;
const ADDED_FOR_TOOLS = 1_024n;
const END_REASONS: Readonly<Record<string, EndReason>> = {
  end_turn: 'end_turn',
  stop_sequence: 'end_turn',
  pause_turn: 'end_turn',
  tool_use: 'tool_use',
  max_tokens: 'max_tokens',
  model_context_window_exceeded: 'max_tokens',
  refusal: 'content_filter',
};

/** The Messages API of Anthropic. */
export const messages: Dialect = {
  api: 'anthropic',
  path: '/messages',
  read(body): BoundedRequest {
    assertBounded(body);
    const { messages: turns, tools, stream, ...rest } = body;
    if (!Array.isArray(turns) || turns.length === 0) {
      throw notAllowed('messages', 'must be a list with at least one message');
    }
    const read = [measured('system', rest, 'body'), ...turns.map(messageOf)];
    return {
      messages: read,
      tools: listOf(tools),
      cacheWrites: cacheWritesIn(read, tools),
      addedTokens: listOf(tools).length > 0 ? ADDED_FOR_TOOLS : ADDED_TOKENS,
      maxOutputTokens: outputLimitOf(body, 'max_tokens'),
      stream: stream === true,
      includeUsage: true,
    };
  },
  bodyFor: ({ body, stream }, { model, maxOutputTokens }) => ({
    ...body,
    model: model.providerModel,
    max_tokens: Number(maxOutputTokens),
    stream: stream && model.streaming,
  }),
  partOf(event) {
    switch (event.type) {
      case 'message_start':
        return { ...envelopeOf(fieldsOf(event.message), 'start'), isAnswer: true };
      case 'content_block_start':
        return blockOf(event.content_block, indexOf(event.index), 'start');
      case 'content_block_delta':
        return deltaOf(fieldsOf(event.delta), indexOf(event.index));
      case 'message_delta':
        return { ...endOf(fieldsOf(event.delta)), usage: withoutNull(event.usage) };
      case 'message_stop':
        return { isLast: true };
      default:
        return {};
    }
  },
  wholeOf(message) {
    const parts = listOf(message.content).map((block, index) => blockOf(block, index, 'whole'));
    return {
      ...envelopeOf(message, 'whole'),
      ...endOf(message),
      isAnswer: message.type === 'message',
      text: parts.map(({ text = '' }) => text).join(''),
      otherContent: parts.map(({ otherContent = '' }) => otherContent).join(''),
      toolUses: parts.flatMap(({ toolUses = [] }) => toolUses),
      blocks: parts.flatMap(({ blocks = [] }) => blocks),
    };
  },
  readUsage(usage) {
    const uncached = countOf(usage.input_tokens);
    const output = countOf(usage.output_tokens);
    if (uncached === undefined || output === undefined) return undefined;
    const written = countOf(usage.cache_creation_input_tokens) ?? 0n;
    const read = countOf(usage.cache_read_input_tokens) ?? 0n;
    const long = countOf(fieldsOf(usage.cache_creation).ephemeral_1h_input_tokens) ?? 0n;
    return {
      input: uncached + written + read,
      cachedInput: read,
      cacheWrite: written,
      longCacheWrite: atMost(long, written),
      output,
      reasoning: 0n,
    };
  },
  cut: ({ last }) => [
    ...(last.type === 'content_block_delta' || last.type === 'content_block_start'
      ? [{ type: 'content_block_stop', index: last.index }]
      : []),
    { type: 'message_delta', delta: { stop_reason: 'max_tokens', stop_sequence: null }, usage: {} },
    { type: 'message_stop' },
  ],
};

function assertBounded(body: JsonObject): void {
  assertOneOf(body, 'service_tier', ['auto', 'standard_only']);
  assertOneOf(body, 'speed', ['standard']);
  assertOneOf(body, 'inference_geo', ['global']);
  if (listOf(body.mcp_servers).length > 0) throw hostedTool('mcp_servers');
  if (isSet(body.container)) throw hostedTool('container');
  for (const [index, tool] of listOf(body.tools).entries()) {
    const { type } = fieldsOf(tool);
    const isOfCaller = type === undefined || type === null || CALLER_TOOL.test(textOf(type));
    if (!isOfCaller) throw hostedTool(`tools[${index}]`);
  }
}

/**
 * Returns the cache writes that a request can cause; only blocks marked with cache_control are written to the cache.
 */
function cacheWritesIn(turns: readonly ChatMessage[], tools: unknown): CacheWrites {
  const texts = turns.flatMap(({ parts }) =>
    parts.flatMap((part) => (part.type === 'text' ? part.text : [])),
  );
  texts.push(JSON.stringify(tools ?? []));
  if (!texts.some((text) => text.includes('"cache_control"'))) return 'none';
  return texts.some((text) => text.includes('"1h"')) ? 'long' : 'short';
}

function messageOf(message: JsonValue, index: number) {
  const role = isJsonObject(message) ? message.role : undefined;
  if (role === 'user' || role === 'assistant' || role === 'system') {
    return measured(role, message, `messages[${index}]`);
  }
  throw notAllowed(`messages[${index}].role`, 'is unknown');
}

function envelopeOf({ id, model, usage }: Fields, at: 'start' | 'whole'): AnswerPart {
  // The output count at the start of a stream includes only the first tokens.
  const { output_tokens: output, ...prompt } = withoutNull(usage);
  const reported = at === 'start' ? prompt : { ...prompt, output_tokens: output };
  return { responseId: id, model, usage: reported };
}

function withoutNull(usage: unknown): Fields {
  return Object.fromEntries(Object.entries(fieldsOf(usage)).filter(([, value]) => value !== null));
}

function endOf({ stop_reason: reason }: Fields): AnswerPart {
  const finishReason = textOf(reason);
  return finishReason === '' ? {} : { finishReason, endReason: END_REASONS[finishReason] };
}

function blockOf(block: unknown, index: number | undefined, at: 'start' | 'whole'): AnswerPart {
  const { type, text, thinking, signature, data, id, name, input } = fieldsOf(block);
  if (type === 'text') return textPart(textOf(text), index);
  if (type === 'thinking') {
    const own = { type, thinking: textOf(thinking), signature: textOf(signature) };
    return { otherContent: own.thinking, ...thinkingPart(own, index) };
  }
  if (type === 'redacted_thinking') return thinkingPart({ type, data: textOf(data) }, index);
  if (type !== 'tool_use') return { otherContent: textOf(thinking) };
  // In a stream, later events contain the arguments.
  const argumentsJson = at === 'whole' ? JSON.stringify(input ?? {}) : '';
  return { toolUses: [{ index, id: textOf(id), tool: textOf(name), argumentsJson }] };
}

function deltaOf(delta: Fields, index: number | undefined): AnswerPart {
  switch (delta.type) {
    case 'text_delta':
      return textPart(textOf(delta.text), index);
    case 'thinking_delta': {
      const thinking = textOf(delta.thinking);
      return { otherContent: thinking, ...thinkingPart({ thinking }, index) };
    }
    case 'signature_delta':
      return thinkingPart({ signature: textOf(delta.signature) }, index);
    case 'input_json_delta': {
      const argumentsJson = textOf(delta.partial_json);
      return { toolUses: [{ index, id: '', tool: '', argumentsJson }] };
    }
    default:
      return { otherContent: textOf(delta.thinking) };
  }
}

function textPart(text: string, index: number | undefined): AnswerPart {
  return { text, ...(index !== undefined && { blocks: [{ index, text }] }) };
}

function thinkingPart(thinking: ThinkingBlock, index: number | undefined): AnswerPart {
  return index === undefined ? {} : { blocks: [{ index, thinking }] };
}
