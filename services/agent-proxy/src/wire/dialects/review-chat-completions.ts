import { type Fields, fieldsOf, listOf, textOf } from '@writ/kernel';
import {
  approvedCall,
  type Joiner,
  type ModelToolCall,
  offeredTool,
  type Release,
  type ReviewedAnswer,
  type ReviewForm,
  unforcedChoice,
  unreviewable,
} from './review-form.ts';

/** Reviews answers in the format of the OpenAI Chat Completions API. */
export const reviewChatCompletions: ReviewForm = {
  offered: ({ tools }) =>
    listOf(tools).map((tool) => {
      const { name, parameters } = fieldsOf(fieldsOf(tool).function);
      return offeredTool(tool, name, parameters);
    }),
  answer: () => new ChatAnswer(),
  continued: ({ messages, tool_choice: choice, ...body }, { text, calls }) => ({
    ...body,
    ...unforcedChoice(choice),
    messages: [
      ...listOf(messages),
      {
        role: 'assistant',
        content: text === '' ? null : text,
        tool_calls: calls.map(({ id, name, argumentsJson }) => ({
          id,
          type: 'function',
          function: { name, arguments: argumentsJson },
        })),
      },
      ...calls.map(({ id, result }) => ({ role: 'tool', tool_call_id: id, content: result })),
    ],
  }),
  joiner: () => new ChatJoiner(),
};

/** Fields of a message that are objects or lists but contain no tool calls. */
const OBJECTS: readonly string[] = ['annotations', 'reasoning_details'];

class ChatAnswer implements ReviewedAnswer {
  readonly #ids = new Map<unknown, string>();
  /** Calls whose arguments were sent to the client. */
  readonly #sent = new Set<string>();

  get callIds(): readonly string[] {
    return [...this.#ids.values()];
  }

  read({ object, choices }: Fields): Release {
    const isWhole = object === 'chat.completion';
    if (listOf(choices).length === 0) return 'pending';
    if (!isWhole && object !== 'chat.completion.chunk') throw unreviewable('an unknown event');
    const [first, ...others] = listOf(choices);
    if (others.length > 0) throw unreviewable('several choices');
    const { message, delta } = fieldsOf(first);
    const part = fieldsOf(isWhole ? message : delta);
    for (const [name, value] of Object.entries(part)) assertKnown(name, value);
    for (const [position, call] of listOf(part.tool_calls).entries()) {
      this.#readCall(fieldsOf(call), isWhole ? position : undefined);
    }
    if (isWhole || this.#ids.size > 0) return 'held';
    const isEmpty = Object.entries(part).every(([name, value]) => name === 'role' || !value);
    return isEmpty ? 'pending' : 'open';
  }

  approved(event: Fields, calls: ReadonlyMap<string, ModelToolCall>): Fields[] {
    const isWhole = event.object === 'chat.completion';
    const field = isWhole ? 'message' : 'delta';
    const choices = listOf(event.choices).map((choice) => {
      const fields = fieldsOf(choice);
      const part = fieldsOf(fields[field]);
      const proposed = listOf(part.tool_calls);
      if (proposed.length === 0) return choice;
      const tool_calls = proposed.map((call, position) => {
        const { index = position, ...rest } = fieldsOf(call);
        const { id, name, argumentsJson } = approvedCall(calls, this.#ids.get(index));
        if (isWhole) return { ...rest, function: { name, arguments: argumentsJson } };
        const isFirst = !this.#sent.has(id);
        this.#sent.add(id);
        const whole = isFirst ? { name, arguments: argumentsJson } : { arguments: '' };
        return { index, ...rest, function: whole };
      });
      return { ...fields, [field]: { ...part, tool_calls } };
    });
    return [{ ...event, choices }];
  }

  #readCall({ index: given, id, type }: Fields, position: number | undefined): void {
    const index = position ?? given ?? 0;
    const isNew = !this.#ids.has(index);
    if (type !== 'function' && (isNew ? type !== undefined : textOf(type) !== '')) {
      throw unreviewable(`a tool call of the type ${textOf(type) || 'unknown'}`);
    }
    const known = this.#ids.get(index);
    if (isNew) this.#ids.set(index, textOf(id));
    else if (textOf(id) !== '' && textOf(id) !== known) throw unreviewable('a call with two ids');
  }
}

function assertKnown(name: string, value: unknown): void {
  if (name === 'tool_calls' || OBJECTS.includes(name) || typeof value !== 'object') return;
  if (value === null || Object.keys(value).length === 0) return;
  const isText = (part: unknown) => fieldsOf(part).type === 'text';
  if (name === 'content' && Array.isArray(value) && value.every(isText)) return;
  throw unreviewable(`content in the field ${name}`);
}

class ChatJoiner implements Joiner {
  #id: unknown;

  next(): Fields[] {
    // All events get the id of the first chunk, and text has no event that ends it.
    return [];
  }

  join(event: Fields): Fields {
    this.#id ??= event.id;
    return event.id === this.#id ? event : { ...event, id: this.#id };
  }
}
