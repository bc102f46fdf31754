import type { ServerResponse } from 'node:http';
import { chunk, event, type ModelRequest } from './scripted-model.ts';

/** An answer of a scripted model: a text, then tool calls. */
export interface ScriptedAnswer {
  readonly text?: string;
  readonly calls?: readonly ScriptedCall[];
}

/** A tool call; `json` is the text of its arguments as the model writes it. */
export interface ScriptedCall {
  readonly id: string;
  readonly name: string;
  readonly json: string;
  /** Namespace of the tool; only for the Responses API. */
  readonly namespace?: string;
}

/** Answers in the dialect of the request, streamed in small parts when the request asks for a stream. */
export function answerWith(
  request: ModelRequest,
  response: ServerResponse,
  { text = '', calls = [] }: ScriptedAnswer,
): void {
  const answer = { text, calls };
  const { path, body } = request;
  const write = WRITERS[path];
  if (write === undefined) throw new Error(`no dialect at ${path}`);
  const { whole, events } = write(answer);
  if (body.stream !== true) {
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify(whole));
    return;
  }
  response.setHeader('content-type', 'text/event-stream');
  for (const part of events) response.write(part);
  response.end();
}

let answers = 0;
type Answer = Required<ScriptedAnswer>;
type Writer = (answer: Answer) => { readonly whole: object; readonly events: readonly string[] };

/** Two halves, as a model streams them. */
function halves(text: string): string[] {
  const middle = Math.ceil(text.length / 2);
  return [text.slice(0, middle), text.slice(middle)].filter((part) => part !== '');
}

function chat({ text, calls }: Answer) {
  answers += 1;
  const usage = { prompt_tokens: 30, completion_tokens: 5, total_tokens: 35 };
  const finish = calls.length > 0 ? 'tool_calls' : 'stop';
  const tool_calls = calls.map(({ id, name, json }) => ({
    id,
    type: 'function',
    function: { name, arguments: json },
  }));
  const message = {
    role: 'assistant',
    content: text === '' ? null : text,
    ...(calls.length > 0 && { tool_calls }),
  };
  const envelope = { id: `chatcmpl-${answers}`, created: 1, model: 'gpt-4.1-mini-2025' };
  const choices = [{ index: 0, message, finish_reason: finish, logprobs: null }];
  const last = { ...envelope, object: 'chat.completion.chunk', choices: [], usage };
  return {
    whole: { ...envelope, object: 'chat.completion', choices, usage },
    events: [
      chunk({ role: 'assistant', content: '' }),
      ...halves(text).map((content) => chunk({ content })),
      ...tool_calls.flatMap(({ function: called, ...call }, index) => [
        chunk({ tool_calls: [{ index, ...call, function: { ...called, arguments: '' } }] }),
        ...halves(called.arguments).map((part) =>
          chunk({ tool_calls: [{ index, function: { arguments: part } }] }),
        ),
      ]),
      chunk({}, finish),
      `data: ${JSON.stringify(last)}\n\n`,
      'data: [DONE]\n\n',
    ],
  };
}

function message({ text, calls }: Answer) {
  answers += 1;
  const usage = { input_tokens: 30, output_tokens: 5 };
  const end = { stop_reason: calls.length > 0 ? 'tool_use' : 'end_turn', stop_sequence: null };
  const envelope = { id: `msg_${answers}`, type: 'message', role: 'assistant', model: 'claude-1' };
  const texts = text === '' ? [] : [{ type: 'text', text }];
  const uses = calls.map(({ id, name, json }) => ({
    type: 'tool_use',
    id,
    name,
    input: JSON.parse(json),
  }));
  const started = { ...envelope, content: [], stop_reason: null, stop_sequence: null, usage };
  const blocks = [...texts, ...calls].flatMap((block, index) => {
    const isCall = 'json' in block;
    const { id, name } = isCall ? block : { id: '', name: '' };
    const start = isCall ? { type: 'tool_use', id, name, input: {} } : { type: 'text', text: '' };
    const deltas = halves(isCall ? block.json : block.text).map((part) =>
      isCall
        ? { type: 'input_json_delta', partial_json: part }
        : { type: 'text_delta', text: part },
    );
    return [
      event({ type: 'content_block_start', index, content_block: start }),
      ...deltas.map((delta) => event({ type: 'content_block_delta', index, delta })),
      event({ type: 'content_block_stop', index }),
    ];
  });
  return {
    whole: { ...envelope, ...end, content: [...texts, ...uses], usage },
    events: [
      event({ type: 'message_start', message: started }),
      event({ type: 'ping' }),
      ...blocks,
      event({ type: 'message_delta', delta: end, usage: { output_tokens: 5 } }),
      event({ type: 'message_stop' }),
    ],
  };
}

interface Typed extends Readonly<Record<string, unknown>> {
  readonly type: string;
}

function response({ text, calls }: Answer) {
  answers += 1;
  const spoken = {
    type: 'message',
    id: `msg_${answers}`,
    role: 'assistant',
    status: 'completed',
    content: [{ type: 'output_text', text, annotations: [] }],
  };
  const called = calls.map(({ id, name, json, namespace }, index) => ({
    type: 'function_call',
    id: `fc_${answers}_${index}`,
    call_id: id,
    name,
    ...(namespace !== undefined && { namespace }),
    arguments: json,
    status: 'completed',
  }));
  const output = [...(text === '' ? [] : [spoken]), ...called];
  const usage = {
    input_tokens: 30,
    input_tokens_details: { cached_tokens: 0 },
    output_tokens: 5,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: 35,
  };
  const envelope = { id: `resp_${answers}`, object: 'response', created_at: 1, model: 'gpt-4.1' };
  const started = { ...envelope, tools: [], status: 'in_progress', output: [] };
  const done = { ...envelope, tools: [], status: 'completed', output, usage };
  const items = output.flatMap((item, output_index): Typed[] => {
    const at = { item_id: item.id, output_index };
    const end = { type: 'response.output_item.done', output_index, item };
    if ('arguments' in item) {
      const json = item.arguments;
      return [
        { type: 'response.output_item.added', output_index, item: { ...item, arguments: '' } },
        ...halves(json).map((delta) => ({
          type: 'response.function_call_arguments.delta',
          ...at,
          delta,
        })),
        { type: 'response.function_call_arguments.done', ...at, name: item.name, arguments: json },
        end,
      ];
    }
    const part = { ...at, content_index: 0 };
    const content = { type: 'output_text', text: '', annotations: [] };
    return [
      { type: 'response.output_item.added', output_index, item: { ...item, content: [] } },
      { type: 'response.content_part.added', ...part, part: content },
      ...halves(text).map((delta) => ({
        type: 'response.output_text.delta',
        ...part,
        delta,
        logprobs: [],
      })),
      { type: 'response.output_text.done', ...part, text, logprobs: [] },
      { type: 'response.content_part.done', ...part, part: { ...content, text } },
      end,
    ];
  });
  const all = [
    { type: 'response.created', response: started },
    { type: 'response.in_progress', response: started },
    ...items,
    { type: 'response.completed', response: done },
  ];
  return {
    whole: done,
    events: all.map((data, sequence_number) => event({ ...data, sequence_number })),
  };
}

const WRITERS: Readonly<Record<string, Writer>> = {
  '/chat/completions': chat,
  '/messages': message,
  '/responses': response,
};
