import { Dialect as ContractDialect, EndReason } from '@writ/contracts/writ/model/v1/model_pb';
import { fieldsOf, listOf } from '@writ/kernel';
import { openAiError } from '../http-error.ts';
import { type Dialect, partsOf, type Recorded } from './dialect.ts';
import { reviewChatCompletions } from './review-chat-completions.ts';

const FINISH: Readonly<Partial<Record<EndReason, string>>> = {
  [EndReason.END_TURN]: 'stop',
  [EndReason.TOOL_USE]: 'tool_calls',
  [EndReason.MAX_TOKENS]: 'length',
  [EndReason.CONTENT_FILTER]: 'content_filter',
};

/** The dialect of the OpenAI Chat Completions API. */
export const chatCompletions: Dialect = {
  name: ContractDialect.OPENAI_CHAT,
  path: '/v1/chat/completions',
  forwarded: [],
  frame: (json) => `data: ${json}\n\n`,
  end: 'data: [DONE]\n\n',
  keepAlive: ': keep-alive\n\n',
  isWhole: (head) => head.includes('"object":"chat.completion"'),
  whole: (recorded) => ({
    ...envelope(recorded, 'chat.completion'),
    choices: [
      {
        index: 0,
        message: { role: 'assistant', ...answerOf(recorded) },
        finish_reason: finishOf(recorded),
      },
    ],
    usage: usageOf(recorded),
  }),
  events(recorded) {
    const chunk = envelope(recorded, 'chat.completion.chunk');
    const { tool_calls: calls, ...answer } = answerOf(recorded);
    const delta = {
      role: 'assistant',
      ...answer,
      ...(calls && { tool_calls: calls.map((call, index) => ({ index, ...call })) }),
    };
    return [
      { ...chunk, choices: [{ index: 0, delta, finish_reason: null }] },
      { ...chunk, choices: [{ index: 0, delta: {}, finish_reason: finishOf(recorded) }] },
      ...(recorded.includeUsage ? [{ ...chunk, choices: [], usage: usageOf(recorded) }] : []),
    ];
  },
  error: openAiError,
  failure: openAiError,
  review: reviewChatCompletions,
};

function envelope<T extends string>({ finished, callId, model }: Recorded, object: T) {
  return { id: finished.responseId || `chatcmpl-${callId}`, object, created: 0, model };
}

function finishOf(recorded: Recorded): string {
  const finish = FINISH[recorded.finished.endReason] ?? 'stop';
  return finish === 'tool_calls' && hasFunctionCall(recorded) ? 'function_call' : finish;
}

/** The id that the meter records for the first call of an answer if the provider sent none. */
const RECORDED_ID = 'call_1';

/**
 * Whether the provider answered with `function_call`, which has no id, to a request with the deprecated field
 * `functions`.
 */
function hasFunctionCall(recorded: Recorded): boolean {
  const { calls } = partsOf(recorded);
  const isWithoutId = calls.length === 1 && calls[0]?.id === RECORDED_ID;
  return isWithoutId && listOf(recorded.body.functions).length > 0;
}

function answerOf(recorded: Recorded) {
  const { body } = recorded;
  const { text, calls } = partsOf(recorded);
  const [first] = calls;
  if (first === undefined) return { content: text };
  const content = text === '' ? null : text;
  if (hasFunctionCall(recorded)) {
    return { content, function_call: { name: first.name, arguments: first.argumentsJson } };
  }
  const custom = new Set(listOf(body.tools).map((tool) => fieldsOf(fieldsOf(tool).custom).name));
  return {
    content,
    tool_calls: calls.map(({ id, name, argumentsJson }) =>
      custom.has(name)
        ? { id, type: 'custom', custom: { name, input: argumentsJson } }
        : { id, type: 'function', function: { name, arguments: argumentsJson } },
    ),
  };
}

function usageOf(recorded: Recorded) {
  const { input, cached, output, reasoning } = partsOf(recorded).tokens;
  return {
    prompt_tokens: input,
    completion_tokens: output,
    total_tokens: input + output,
    prompt_tokens_details: { cached_tokens: cached },
    completion_tokens_details: { reasoning_tokens: reasoning },
  };
}
