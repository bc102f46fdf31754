import { Dialect as ContractDialect, EndReason } from '@writ/contracts/writ/model/v1/model_pb';
import { anthropicError } from '../http-error.ts';
import { type Dialect, namedFrame, partsOf, type Recorded } from './dialect.ts';
import { reviewMessages } from './review-messages.ts';

const STOP: Readonly<Partial<Record<EndReason, string>>> = {
  [EndReason.END_TURN]: 'end_turn',
  [EndReason.TOOL_USE]: 'tool_use',
  [EndReason.MAX_TOKENS]: 'max_tokens',
  [EndReason.CONTENT_FILTER]: 'refusal',
};

/** Messages of Anthropic. */
export const messages: Dialect = {
  name: ContractDialect.ANTHROPIC_MESSAGES,
  path: '/v1/messages',
  forwarded: ['anthropic-version', 'anthropic-beta'],
  frame: namedFrame,
  end: '',
  keepAlive: 'event: ping\ndata: {"type":"ping"}\n\n',
  isWhole: (head) => head.includes('"type":"message"') && !head.includes('"type":"message_start"'),
  whole: (recorded) => messageOf(recorded),
  events(recorded) {
    const { content, usage, stop_reason, ...message } = messageOf(recorded);
    const start = { ...message, content: [], stop_reason: null, usage };
    return [
      { type: 'message_start', message: start },
      ...content.flatMap(blockEvents),
      { type: 'message_delta', delta: { stop_reason, stop_sequence: null }, usage },
      { type: 'message_stop' },
    ];
  },
  error: anthropicError,
  failure: anthropicError,
  review: reviewMessages,
};

type Block = ReturnType<typeof messageOf>['content'][number];

function messageOf(recorded: Recorded) {
  const { finished, callId, model } = recorded;
  const { text, calls, tokens } = partsOf(recorded);
  const { input, cached, written, output } = tokens;
  const uses = calls.map(({ id, name, argumentsJson }) => ({
    type: 'tool_use' as const,
    id,
    name,
    input: inputOf(argumentsJson),
  }));
  return {
    id: finished.responseId || `msg_${callId}`,
    type: 'message',
    role: 'assistant',
    model,
    content: [...(text === '' ? [] : [{ type: 'text' as const, text }]), ...uses],
    stop_reason: STOP[finished.endReason] ?? 'end_turn',
    stop_sequence: null,
    usage: {
      input_tokens: input - cached - written,
      cache_creation_input_tokens: written,
      cache_read_input_tokens: cached,
      output_tokens: output,
    },
  };
}

/** The arguments are those of the model, which may not be JSON. */
function inputOf(argumentsJson: string): unknown {
  try {
    return JSON.parse(argumentsJson);
  } catch {
    return {};
  }
}

function blockEvents(block: Block, index: number): object[] {
  const isText = block.type === 'text';
  const start = isText ? { type: 'text', text: '' } : { ...block, input: {} };
  const delta = isText
    ? { type: 'text_delta', text: block.text }
    : { type: 'input_json_delta', partial_json: JSON.stringify(block.input) };
  return [
    { type: 'content_block_start', index, content_block: start },
    { type: 'content_block_delta', index, delta },
    { type: 'content_block_stop', index },
  ];
}
