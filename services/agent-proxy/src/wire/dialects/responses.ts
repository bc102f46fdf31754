import { Dialect as ContractDialect, EndReason } from '@writ/contracts/writ/model/v1/model_pb';
import { openAiError } from '../http-error.ts';
import { type Dialect, namedFrame, partsOf, type Recorded } from './dialect.ts';
import { reviewResponses } from './review-responses.ts';

/** The dialect of the OpenAI Responses API. */
export const responses: Dialect = {
  name: ContractDialect.OPENAI_RESPONSES,
  path: '/v1/responses',
  forwarded: [],
  frame: namedFrame,
  end: '',
  keepAlive: ': keep-alive\n\n',
  isWhole: (head) => head.includes('"object":"response"') && !head.includes('"type":"response.'),
  whole: (recorded) => responseOf(recorded),
  events(recorded) {
    const response = responseOf(recorded);
    const { output, status, ...rest } = response;
    const created = { ...rest, output: [], status: 'in_progress' };
    return [
      { type: 'response.created', response: created },
      ...output.flatMap(itemEvents),
      { type: `response.${status}`, response },
    ].map((event, sequence_number) => ({ ...event, sequence_number }));
  },
  error: openAiError,
  failure: ({ message, code, type }) => ({
    type: 'response.failed',
    sequence_number: 0,
    response: {
      id: '',
      object: 'response',
      created_at: 0,
      status: 'failed',
      error: { code: type === 'insufficient_quota' ? type : code, message },
      output: [],
    },
  }),
  review: reviewResponses,
};

type Item = ReturnType<typeof itemsOf>[number];

function responseOf(recorded: Recorded) {
  const { finished, callId, model } = recorded;
  const { input, cached, output, reasoning } = partsOf(recorded).tokens;
  const reason = INCOMPLETE[finished.endReason];
  return {
    id: finished.responseId || `resp_${callId}`,
    object: 'response',
    created_at: 0,
    status: reason === undefined ? 'completed' : 'incomplete',
    model,
    error: null,
    incomplete_details: reason === undefined ? null : { reason },
    instructions: null,
    metadata: {},
    output: itemsOf(recorded),
    parallel_tool_calls: true,
    temperature: null,
    tool_choice: 'auto',
    tools: [],
    top_p: null,
    usage: {
      input_tokens: input,
      input_tokens_details: { cached_tokens: cached },
      output_tokens: output,
      output_tokens_details: { reasoning_tokens: reasoning },
      total_tokens: input + output,
    },
  };
}

const INCOMPLETE: Readonly<Partial<Record<EndReason, string>>> = {
  [EndReason.MAX_TOKENS]: 'max_output_tokens',
  [EndReason.CONTENT_FILTER]: 'content_filter',
};

/**
 * Returns the output items of a recorded answer. Ids that contain `writ` were not created by the provider; the meter
 * removes them from later requests.
 */
function itemsOf(recorded: Recorded) {
  const { callId } = recorded;
  const { text, calls } = partsOf(recorded);
  const message = {
    type: 'message' as const,
    id: `msg_writ_${callId}`,
    role: 'assistant',
    status: 'completed',
    content: [{ type: 'output_text', text, annotations: [] }],
  };
  const offered = reviewResponses.offered(recorded.body);
  const uses = calls.map(({ id, name, argumentsJson }, index) => {
    const call = { id: `fc_writ_${callId}_${index}`, call_id: id, name, status: 'completed' };
    const isCustom = offered.some((tool) => tool.name === name && tool.isCustom);
    return isCustom
      ? { type: 'custom_tool_call' as const, ...call, input: argumentsJson }
      : { type: 'function_call' as const, ...call, arguments: argumentsJson };
  });
  return [...(text === '' ? [] : [message]), ...uses];
}

function itemEvents(item: Item, output_index: number): object[] {
  const at = { item_id: item.id, output_index };
  const added = (start: object) => ({
    type: 'response.output_item.added',
    output_index,
    item: start,
  });
  const done = { type: 'response.output_item.done', output_index, item };
  if (item.type === 'custom_tool_call') {
    const { input } = item;
    return [
      added({ ...item, input: '', status: 'in_progress' }),
      { type: 'response.custom_tool_call_input.delta', ...at, delta: input },
      { type: 'response.custom_tool_call_input.done', ...at, input },
      done,
    ];
  }
  if (item.type === 'function_call') {
    const { arguments: json, name } = item;
    return [
      added({ ...item, arguments: '', status: 'in_progress' }),
      { type: 'response.function_call_arguments.delta', ...at, delta: json },
      { type: 'response.function_call_arguments.done', ...at, arguments: json, name },
      done,
    ];
  }
  const [part] = item.content;
  const text = part?.text ?? '';
  const of = { ...at, content_index: 0 };
  return [
    added({ ...item, content: [], status: 'in_progress' }),
    { type: 'response.content_part.added', ...of, part: { ...part, text: '' } },
    { type: 'response.output_text.delta', ...of, delta: text, logprobs: [] },
    { type: 'response.output_text.done', ...of, text, logprobs: [] },
    { type: 'response.content_part.done', ...of, part },
    done,
  ];
}
