import {
  type ContentPart,
  Dialect as ContractDialect,
  EndReason,
} from '@writ/contracts/writ/model/v1/model_pb';
import { anthropicError } from '../http-error.ts';
import { type Dialect, namedFrame, partsOf, type Recorded } from './dialect.ts';
import { reviewMessages } from './review-messages.ts';

const STOP: Readonly<Partial<Record<EndReason, string>>> = {
  [EndReason.END_TURN]: 'end_turn',
  [EndReason.TOOL_USE]: 'tool_use',
  [EndReason.MAX_TOKENS]: 'max_tokens',
  [EndReason.CONTENT_FILTER]: 'refusal',
};

/** The dialect of the Anthropic Messages API. */
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

type Block =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'thinking'; readonly thinking: string; readonly signature: string }
  | { readonly type: 'redacted_thinking'; readonly data: string }
  | {
      readonly type: 'tool_use';
      readonly id: string;
      readonly name: string;
      readonly input: unknown;
    };

function messageOf(recorded: Recorded) {
  const { finished, callId, model } = recorded;
  const { input, cached, written, output } = partsOf(recorded).tokens;
  return {
    id: finished.responseId || `msg_${callId}`,
    type: 'message',
    role: 'assistant',
    model,
    content: (finished.message?.parts ?? []).flatMap(({ kind }) => blocksOf(kind)),
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

/**
 * Returns the content blocks of a part. Thinking keeps its signature and precedes the calls, because the provider
 * rejects a tool call without the thinking that led to it.
 */
function blocksOf(kind: ContentPart['kind']): Block[] {
  switch (kind.case) {
    case 'text':
      return [{ type: 'text', text: kind.value }];
    case 'thinkingJson':
      return [JSON.parse(Buffer.from(kind.value).toString())];
    case 'toolUse': {
      const { toolUseId: id, tool: name, argumentsJson } = kind.value;
      return [{ type: 'tool_use', id, name, input: inputOf(argumentsJson) }];
    }
    default:
      return [];
  }
}

/** Parses the arguments that the model wrote; returns an empty object when they are not JSON. */
function inputOf(argumentsJson: string): unknown {
  try {
    return JSON.parse(argumentsJson);
  } catch {
    return {};
  }
}

function blockEvents(block: Block, index: number): object[] {
  const { start, deltas } = streamedBlock(block);
  return [
    { type: 'content_block_start', index, content_block: start },
    ...deltas.map((delta) => ({ type: 'content_block_delta', index, delta })),
    { type: 'content_block_stop', index },
  ];
}

/** The start of a block, and the deltas that complete it. */
function streamedBlock(block: Block): { readonly start: object; readonly deltas: object[] } {
  switch (block.type) {
    case 'text':
      return {
        start: { type: 'text', text: '' },
        deltas: [{ type: 'text_delta', text: block.text }],
      };
    case 'thinking': {
      const { thinking, signature } = block;
      return {
        start: { type: 'thinking', thinking: '', signature: '' },
        deltas: [
          { type: 'thinking_delta', thinking },
          { type: 'signature_delta', signature },
        ],
      };
    }
    case 'redacted_thinking':
      return { start: block, deltas: [] };
    case 'tool_use': {
      const partial_json = JSON.stringify(block.input);
      return {
        start: { ...block, input: {} },
        deltas: [{ type: 'input_json_delta', partial_json }],
      };
    }
  }
}
