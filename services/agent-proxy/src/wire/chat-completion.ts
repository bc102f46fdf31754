import { EndReason, type Finished } from '@writ/contracts/writ/model/v1/model_pb';

const FINISH: Readonly<Partial<Record<EndReason, string>>> = {
  [EndReason.END_TURN]: 'stop',
  [EndReason.TOOL_USE]: 'tool_calls',
  [EndReason.MAX_TOKENS]: 'length',
  [EndReason.CONTENT_FILTER]: 'content_filter',
};

/** A recorded answer as a chat completion: for repeats, whose provider is not asked again (AP-2). */
export function chatCompletion(finished: Finished, callId: string, model: string) {
  return {
    ...envelope(callId, model, 'chat.completion'),
    choices: [
      {
        index: 0,
        message: { role: 'assistant', ...answerOf(finished) },
        finish_reason: FINISH[finished.endReason] ?? 'stop',
      },
    ],
    usage: usageOf(finished),
  };
}

/** The same as the chunks of a stream; usage only when the client asked for it. */
export function chatCompletionChunks(
  finished: Finished,
  callId: string,
  model: string,
  includeUsage: boolean,
): object[] {
  const chunk = envelope(callId, model, 'chat.completion.chunk');
  const { tool_calls: calls, ...answer } = answerOf(finished);
  const delta = {
    role: 'assistant',
    ...answer,
    ...(calls && { tool_calls: calls.map((call, index) => ({ index, ...call })) }),
  };
  const finish = FINISH[finished.endReason] ?? 'stop';
  return [
    { ...chunk, choices: [{ index: 0, delta, finish_reason: null }] },
    { ...chunk, choices: [{ index: 0, delta: {}, finish_reason: finish }] },
    ...(includeUsage ? [{ ...chunk, choices: [], usage: usageOf(finished) }] : []),
  ];
}

function envelope<T extends string>(callId: string, model: string, object: T) {
  return { id: `chatcmpl-${callId}`, object, created: 0, model };
}

function answerOf({ message }: Finished) {
  const parts = message?.parts ?? [];
  const text = parts.map(({ kind }) => (kind.case === 'text' ? kind.value : '')).join('');
  const calls = parts.flatMap(({ kind }) =>
    kind.case === 'toolUse'
      ? [
          {
            id: kind.value.toolUseId,
            type: 'function',
            function: { name: kind.value.tool, arguments: kind.value.argumentsJson },
          },
        ]
      : [],
  );
  const hasCalls = calls.length > 0;
  return { content: text === '' && hasCalls ? null : text, ...(hasCalls && { tool_calls: calls }) };
}

function usageOf({ usage }: Finished) {
  const input = Number(usage?.inputTokens ?? 0n);
  const output = Number(usage?.outputTokens ?? 0n);
  return { prompt_tokens: input, completion_tokens: output, total_tokens: input + output };
}
