import { type Fields, fieldsOf, listOf, textOf } from '@writ/kernel';
import {
  approvedCall,
  type Joiner,
  type ModelToolCall,
  type OfferedTool,
  offeredTool,
  type Release,
  type ReviewedAnswer,
  type ReviewForm,
  unforcedChoice,
  unreviewable,
} from './review-form.ts';

/** Reviews answers in the format of the OpenAI Responses API. */
export const reviewResponses: ReviewForm = {
  offered: ({ tools }) => offeredIn(tools),
  answer: (body) => new ResponseAnswer(body),
  continued: ({ input, tool_choice: choice, ...body }, { text, calls }) => ({
    ...body,
    ...unforcedChoice(choice),
    input: [
      ...(typeof input === 'string' ? [{ role: 'user', content: input }] : listOf(input)),
      ...(text === '' ? [] : [{ role: 'assistant', content: text }]),
      ...calls.flatMap(
        ({ id: call_id, name, argumentsJson, isCustom, result: output }): Fields[] =>
          isCustom
            ? [
                { type: 'custom_tool_call', call_id, name, input: argumentsJson },
                { type: 'custom_tool_call_output', call_id, output },
              ]
            : [
                { type: 'function_call', call_id, name, arguments: argumentsJson },
                { type: 'function_call_output', call_id, output },
              ],
      ),
    ],
  }),
  joiner: () => new ResponseJoiner(),
};

/** Returns the offered tools, including the tools inside namespaces. */
function offeredIn(tools: unknown): OfferedTool[] {
  return listOf(tools).flatMap((tool) => {
    const { type, tools: nested, name, parameters } = fieldsOf(tool);
    return type === 'namespace' ? offeredIn(nested) : [offeredTool(tool, name, parameters)];
  });
}

const ITEMS: Readonly<Record<string, Release>> = {
  message: 'open',
  reasoning: 'pending',
  function_call: 'held',
  custom_tool_call: 'held',
};
/** The field of a call that has its arguments. */
const ARGUMENTS: Readonly<Record<string, string>> = {
  function_call: 'arguments',
  custom_tool_call: 'input',
};
const TEXT_EVENT = /^response\.(content_part|output_text|refusal)\./;
const REASONING_EVENT = /^response\.reasoning/;
const ARGUMENTS_EVENT =
  /^response\.(function_call_arguments|custom_tool_call_input)\.(delta|done)$/;
const ENVELOPE = /^(response\.(created|queued|in_progress|completed|incomplete|failed)|error)$/;

class ResponseAnswer implements ReviewedAnswer {
  readonly #ids = new Map<unknown, string>();
  /** When text is sent to the client. */
  readonly #text: Release;

  /**
   * Creates the reader of an answer. If the model may call a tool and the provider stores answers, no text is sent
   * before the end of the answer, because the client would then also receive the id of this answer. If its tool call
   * were refused, the turn would continue with another answer, and the next request of the client would refer to the
   * wrong one: the provider stores the whole turn only with the last answer.
   */
  constructor({ tools, store }: Fields) {
    this.#text = store === false || listOf(tools).length === 0 ? 'open' : 'pending';
  }

  get callIds(): readonly string[] {
    return [...new Set(this.#ids.values())];
  }

  read(event: Fields): Release {
    const type = textOf(event.type);
    if (event.object === 'response') {
      this.#readOutput(event);
      return 'held';
    }
    if (ENVELOPE.test(type)) {
      this.#readOutput(fieldsOf(event.response));
      return 'pending';
    }
    if (type === 'response.output_item.added' || type === 'response.output_item.done') {
      return this.#readItem(fieldsOf(event.item), event.output_index, type.endsWith('added'));
    }
    if (TEXT_EVENT.test(type)) return this.#text;
    if (REASONING_EVENT.test(type)) return 'pending';
    if (ARGUMENTS_EVENT.test(type) && this.#ids.has(event.output_index)) return 'held';
    throw unreviewable(`an event of the type ${type || 'unknown'}`);
  }

  approved(event: Fields, calls: ReadonlyMap<string, ModelToolCall>): Fields[] {
    const type = textOf(event.type);
    if (event.object === 'response') return [withOutput(event, calls)];
    if (ENVELOPE.test(type)) {
      return [{ ...event, response: withOutput(fieldsOf(event.response), calls) }];
    }
    const { output_index } = event;
    const id = this.#ids.get(output_index);
    if (id === undefined) return [event];
    const { name, argumentsJson } = approvedCall(calls, id);
    if (type.endsWith('.delta')) return [];
    if (type === 'response.output_item.added') {
      const item = fieldsOf(event.item);
      const isCustom = item.type === 'custom_tool_call';
      const delta = isCustom ? 'custom_tool_call_input' : 'function_call_arguments';
      return [
        { ...event, item: { ...item, name, [isCustom ? 'input' : 'arguments']: '' } },
        {
          type: `response.${delta}.delta`,
          item_id: item.id,
          output_index,
          delta: argumentsJson,
        },
      ];
    }
    if (type === 'response.output_item.done') {
      return [{ ...event, item: withArguments(fieldsOf(event.item), calls) }];
    }
    const field = type.startsWith('response.custom') ? 'input' : 'arguments';
    return [{ ...event, [field]: argumentsJson }];
  }

  #readOutput({ output }: Fields): void {
    for (const [index, item] of listOf(output).entries()) {
      this.#readItem(fieldsOf(item), index, false);
    }
  }

  #readItem(item: Fields, index: unknown, isStart: boolean): Release {
    const { type } = item;
    const release = ITEMS[textOf(type)];
    if (release === undefined) {
      throw unreviewable(`an item of the type ${textOf(type) || 'unknown'}`);
    }
    const field = ARGUMENTS[textOf(type)];
    if (field === undefined) {
      if (this.#ids.has(index)) throw unreviewable('two items with the same index');
      return type === 'message' ? this.#text : release;
    }
    const id = textOf(item.call_id);
    if ((this.#ids.get(index) ?? id) !== id)
      throw unreviewable('two tool calls with the same index');
    // The meter reads only the arguments in later events, so arguments in this event are rejected.
    if (isStart && textOf(item[field]) !== '') {
      throw unreviewable('arguments in the start event of a tool call');
    }
    this.#ids.set(index, id);
    return release;
  }
}

function withOutput(response: Fields, calls: ReadonlyMap<string, ModelToolCall>): Fields {
  const output = listOf(response.output);
  if (output.length === 0) return response;
  return { ...response, output: output.map((item) => withArguments(fieldsOf(item), calls)) };
}

function withArguments(item: Fields, calls: ReadonlyMap<string, ModelToolCall>): Fields {
  const field = ARGUMENTS[textOf(item.type)];
  if (field === undefined) return item;
  const { name, argumentsJson } = approvedCall(calls, textOf(item.call_id));
  return { ...item, name, [field]: argumentsJson };
}

class ResponseJoiner implements Joiner {
  /** The id of the stream; undefined before its first event. */
  #id: unknown;
  #isFirst = true;
  #sequence = 0;
  /** Items sent to the client; `#earlier` contains the items of the answers before the current one. */
  readonly #items: unknown[] = [];
  #earlier: readonly unknown[] = [];

  next(): Fields[] {
    this.#earlier = [...this.#items];
    this.#isFirst = false;
    // The client has received all events of an item or none.
    return [];
  }

  join(event: Fields): Fields | undefined {
    const type = textOf(event.type);
    const isStart = type === 'response.created' || type === 'response.in_progress';
    if (isStart && this.#id !== undefined && !this.#isFirst) return undefined;
    if (isStart) this.#id ??= fieldsOf(event.response).id;
    if (type === 'response.output_item.done') this.#items.push(event.item);
    const joined = {
      ...event,
      ...(typeof event.output_index === 'number' && {
        output_index: event.output_index + this.#earlier.length,
      }),
      ...(event.response !== undefined && { response: this.#whole(fieldsOf(event.response)) }),
    };
    // When the server sends no sequence numbers, none are added.
    if (event.sequence_number === undefined && this.#sequence === 0) return joined;
    return { ...joined, sequence_number: this.#sequence++ };
  }

  #whole(response: Fields): Fields {
    const id = this.#id ?? response.id;
    if (this.#earlier.length === 0 && id === response.id) return response;
    return { ...response, id, output: [...this.#earlier, ...listOf(response.output)] };
  }
}
