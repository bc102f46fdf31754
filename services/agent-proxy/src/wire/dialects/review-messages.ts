import { type Fields, fieldsOf, listOf, textOf } from '@writ/kernel';
import {
  approvedCall,
  inputOf,
  type Joiner,
  type ModelToolCall,
  offeredTool,
  type Release,
  type ReviewedAnswer,
  type ReviewForm,
  unforcedChoice,
  unreviewable,
  type WithheldTurn,
} from './review-form.ts';

/** Reviews answers in the format of the Anthropic Messages API. */
export const reviewMessages: ReviewForm = {
  offered: ({ tools }) =>
    listOf(tools).map((tool) => {
      const { name, input_schema: schema } = fieldsOf(tool);
      return { ...offeredTool(tool, name, schema), isCustom: false };
    }),
  answer: () => new MessageAnswer(),
  continued({ messages, tool_choice: choice, ...body }, turn) {
    const thinking = fieldsOf(body.thinking).type;
    const isThinking = thinking !== undefined && thinking !== 'disabled';
    return {
      ...body,
      ...unforcedChoice(choice),
      messages: [...listOf(messages), ...(isThinking ? asText(turn) : asBlocks(turn))],
    };
  },
  joiner: () => new MessageJoiner(),
};

function asBlocks({ text, calls }: WithheldTurn): Fields[] {
  const uses = calls.map(({ id, name, argumentsJson }) => ({
    type: 'tool_use',
    id,
    name,
    input: inputOf(argumentsJson),
  }));
  const results = calls.map(({ id, result }) => ({
    type: 'tool_result',
    tool_use_id: id,
    content: result,
    is_error: true,
  }));
  const texts = text.trim() === '' ? [] : [{ type: 'text', text }];
  return [
    { role: 'assistant', content: [...texts, ...uses] },
    { role: 'user', content: results },
  ];
}

/**
 * Returns the withheld turn as text messages, because the provider accepts a tool call only with the thinking that led
 * to it, and a withheld turn does not contain that thinking.
 */
function asText({ text, calls }: WithheldTurn): Fields[] {
  const proposed = calls.map(({ name, argumentsJson }) => `[${name} ${argumentsJson}]`);
  const texts = text.trim() === '' ? [] : [text];
  const results = calls.map(({ result }) => result);
  return [
    { role: 'assistant', content: [...texts, ...proposed].join('\n') },
    { role: 'user', content: results.join('\n') },
  ];
}

const RELEASES: Readonly<Record<string, Release>> = {
  text: 'open',
  text_delta: 'open',
  citations_delta: 'open',
  thinking: 'pending',
  redacted_thinking: 'pending',
  thinking_delta: 'pending',
  signature_delta: 'pending',
  tool_use: 'held',
  input_json_delta: 'held',
};

class MessageAnswer implements ReviewedAnswer {
  readonly #ids = new Map<unknown, string>();

  get callIds(): readonly string[] {
    return [...this.#ids.values()];
  }

  read(event: Fields): Release {
    const { index } = event;
    switch (event.type) {
      case 'message':
        for (const [position, block] of listOf(event.content).entries()) {
          this.#readBlock(fieldsOf(block), position);
        }
        return 'held';
      case 'message_start':
        if (listOf(fieldsOf(event.message).content).length > 0)
          throw unreviewable('content in its first event');
        return 'pending';
      case 'content_block_start': {
        const block = fieldsOf(event.content_block);
        // The meter reads only the arguments in later events, so arguments in this event are rejected.
        const isEarly = block.type === 'tool_use' && Object.keys(fieldsOf(block.input)).length > 0;
        if (isEarly) throw unreviewable('arguments in the start event of a tool call');
        return this.#readBlock(block, index);
      }
      case 'content_block_delta': {
        const { type } = fieldsOf(event.delta);
        const isOfCall = this.#ids.has(index);
        if (isOfCall !== (type === 'input_json_delta'))
          throw unreviewable('a delta that does not match its block');
        return releaseOf(type);
      }
      case 'content_block_stop':
      case 'message_delta':
      case 'message_stop':
      case 'ping':
      case 'error':
        return 'pending';
      default:
        throw unreviewable('an unknown event');
    }
  }

  approved(event: Fields, calls: ReadonlyMap<string, ModelToolCall>): Fields[] {
    const { type, index } = event;
    if (type === 'message') {
      const content = listOf(event.content).map((block) => {
        const fields = fieldsOf(block);
        if (fields.type !== 'tool_use') return block;
        const { name, argumentsJson } = approvedCall(calls, textOf(fields.id));
        return { ...fields, name, input: inputOf(argumentsJson) };
      });
      return [{ ...event, content }];
    }
    if (!this.#ids.has(index)) return [event];
    if (type === 'content_block_delta') return [];
    if (type !== 'content_block_start') return [event];
    const { name, argumentsJson } = approvedCall(calls, this.#ids.get(index));
    const delta = { type: 'input_json_delta', partial_json: argumentsJson };
    return [
      { ...event, content_block: { ...fieldsOf(event.content_block), name, input: {} } },
      { type: 'content_block_delta', index, delta },
    ];
  }

  #readBlock({ type, id }: Fields, index: unknown): Release {
    if (type === 'tool_use') {
      if (this.#ids.has(index)) throw unreviewable('two tool calls with the same index');
      this.#ids.set(index, textOf(id));
    }
    return releaseOf(type);
  }
}

function releaseOf(type: unknown): Release {
  const release = RELEASES[textOf(type)];
  if (release === undefined) throw unreviewable(`content of the type ${textOf(type) || 'unknown'}`);
  return release;
}

class MessageJoiner implements Joiner {
  #hasStarted = false;
  /** Number of blocks sent to the client, and number of them that belong to earlier answers. */
  #blocks = 0;
  #earlier = 0;
  /** Indexes of the blocks whose end the client has not received. */
  readonly #open = new Set<number>();

  next(): Fields[] {
    this.#earlier = this.#blocks;
    const stops = [...this.#open].map((index) => ({ type: 'content_block_stop', index }));
    this.#open.clear();
    return stops;
  }

  join(event: Fields): Fields | undefined {
    if (event.type === 'message_start') {
      if (this.#hasStarted) return undefined;
      this.#hasStarted = true;
    }
    if (typeof event.index !== 'number') return event;
    const index = event.index + this.#earlier;
    this.#blocks = Math.max(this.#blocks, index + 1);
    if (event.type === 'content_block_start') this.#open.add(index);
    if (event.type === 'content_block_stop') this.#open.delete(index);
    return { ...event, index };
  }
}
