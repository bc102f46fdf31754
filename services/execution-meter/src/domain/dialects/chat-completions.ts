import {
  type Fields,
  fieldsOf,
  isJsonObject,
  type JsonObject,
  type JsonValue,
  listOf,
  textOf,
} from '@writ/kernel';
import type { ChatRole, EndReason } from '../chat/chat.ts';
import type { AnswerPart, BoundedRequest, Dialect, ToolUsePart } from './dialect.ts';
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

const ROLES: ReadonlyMap<unknown, ChatRole> = new Map([
  ['system', 'system'],
  ['developer', 'system'],
  ['user', 'user'],
  ['assistant', 'assistant'],
  ['tool', 'tool'],
  ['function', 'tool'],
]);
/**
 * Types of the tools that the caller executes. The provider executes tools of any other type itself, without a review.
 */
const CALLER_TOOLS: readonly unknown[] = ['function', 'custom'];
const END_REASONS: Readonly<Record<string, EndReason>> = {
  stop: 'end_turn',
  length: 'max_tokens',
  tool_calls: 'tool_use',
  function_call: 'tool_use',
  content_filter: 'content_filter',
};

/** The Chat Completions API of OpenAI, which many other servers also implement. */
export const chatCompletions: Dialect = {
  api: 'openai',
  path: '/chat/completions',
  read(body): BoundedRequest {
    assertBounded(body);
    const { messages, tools, stream, stream_options: streaming, ...rest } = body;
    if (!Array.isArray(messages) || messages.length === 0) {
      throw notAllowed('messages', 'must be a list with at least one message');
    }
    return {
      messages: [measured('system', rest, 'body'), ...messages.map(messageOf)],
      tools: listOf(tools),
      addedTokens: 0n,
      cacheWrites: 'none',
      maxOutputTokens: outputLimitOf(body, 'max_completion_tokens', 'max_tokens'),
      stream: stream === true,
      includeUsage: isJsonObject(streaming) && streaming.include_usage === true,
    };
  },
  bodyFor({ body, stream }, { model, maxOutputTokens, mayStore }) {
    const { max_tokens: _, max_completion_tokens: __, stream_options: ___, ...rest } = body;
    const streamed = stream && model.streaming;
    const named = (['max_completion_tokens', 'max_tokens'] as const).find((field) => field in body);
    return {
      ...rest,
      model: model.providerModel,
      [named ?? model.outputCapField]: Number(maxOutputTokens),
      stream: streamed,
      ...(streamed && { stream_options: { include_usage: true } }),
      // The field `store` is not added to a request without it: the default of the provider is not to store the answer,
      // and other servers may reject the field.
      ...(!mayStore && 'store' in body && { store: false }),
    };
  },
  partOf: (chunk) => partOf(chunk, 'delta'),
  wholeOf: (completion) => partOf(completion, 'message'),
  readUsage(usage) {
    const input = countOf(usage.prompt_tokens);
    const output = countOf(usage.completion_tokens);
    if (input === undefined || output === undefined) return undefined;
    const cached = countOf(fieldsOf(usage.prompt_tokens_details).cached_tokens) ?? 0n;
    const reasoning = countOf(fieldsOf(usage.completion_tokens_details).reasoning_tokens) ?? 0n;
    return {
      input,
      cachedInput: atMost(cached, input),
      cacheWrite: 0n,
      output,
      reasoning: atMost(reasoning, output),
    };
  },
  cut: () => [
    {
      object: 'chat.completion.chunk',
      choices: [{ index: 0, delta: {}, finish_reason: 'length' }],
    },
  ],
};

function assertBounded(body: JsonObject): void {
  const { modalities, audio, tools, web_search_options: search } = body;
  assertOneOf(body, 'n', [1]);
  if (isSet(audio)) throw notAllowed('audio', 'is not supported');
  if (listOf(modalities).some((mode) => mode !== 'text')) {
    throw notAllowed('modalities', 'must be text only');
  }
  assertOneOf(body, 'service_tier', ['auto', 'default']);
  if (isSet(search)) throw hostedTool('web_search_options');
  for (const [index, tool] of listOf(tools).entries()) {
    if (!CALLER_TOOLS.includes(fieldsOf(tool).type)) throw hostedTool(`tools[${index}]`);
  }
}

function messageOf(message: JsonValue, index: number) {
  const field = `messages[${index}]`;
  const { role: name, audio } = isJsonObject(message) ? message : {};
  const role = ROLES.get(name);
  if (role === undefined) throw notAllowed(`${field}.role`, 'is unknown');
  if (isSet(audio)) throw notAllowed(`${field}.audio`, 'is not supported');
  return measured(role, message, field);
}

function partOf(event: Fields, field: 'delta' | 'message'): AnswerPart {
  const { id: responseId, model, usage, choices } = event;
  const [first] = listOf(choices);
  const envelope = { responseId, model, usage };
  if (typeof first !== 'object' || first === null) {
    return { ...envelope, isForMeter: Array.isArray(choices) && choices.length === 0 };
  }
  const choice = fieldsOf(first);
  const message = fieldsOf(choice[field]);
  const finishReason = textOf(choice.finish_reason);
  return {
    ...envelope,
    isAnswer: true,
    text: textOf(message.content ?? message.refusal),
    toolUses: toolUsesOf(message, field),
    ...(finishReason !== '' && { finishReason, endReason: END_REASONS[finishReason] }),
  };
}

/** The tool calls of a message; `function_call` is the form of the deprecated request field `functions`. */
function toolUsesOf(message: Fields, field: 'delta' | 'message'): ToolUsePart[] {
  const calls = listOf(message.tool_calls);
  if (calls.length === 0) {
    const only = calledOf(fieldsOf(message.function_call));
    return only.tool + only.argumentsJson === '' ? [] : [{ index: 0, id: '', ...only }];
  }
  return calls.map((call, position) => {
    const { index, id, function: called, custom } = fieldsOf(call);
    return {
      index: field === 'message' ? position : indexOf(index),
      id: textOf(id),
      ...calledOf(fieldsOf(called ?? custom)),
    };
  });
}

/** The name and the arguments of a call; the input of a custom tool is text in place of arguments. */
function calledOf({ name, arguments: argumentsJson, input }: Fields) {
  return { tool: textOf(name), argumentsJson: textOf(argumentsJson ?? input) };
}
