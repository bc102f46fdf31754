import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';

/** A request that the scripted model server received. */
export interface ModelRequest {
  readonly method: string;
  /** Path below `/v1`. */
  readonly path: string;
  readonly headers: IncomingMessage['headers'];
  /** Empty object when the request has no body. */
  readonly body: Readonly<Record<string, unknown>>;
  /** Aborts when the caller closes the connection. */
  readonly closed: AbortSignal;
}

/** A scripted model server for every dialect, on loopback. */
export interface ScriptedModel {
  readonly url: string;
  /** The requests received since the start, in order. */
  readonly requests: readonly ModelRequest[];
}

/** Starts a server that passes each request to `answer`; the server is closed after the test. */
export async function scriptedModel(
  answer: (request: ModelRequest, response: ServerResponse) => Promise<void> | void,
): Promise<ScriptedModel> {
  const requests: ModelRequest[] = [];
  // On a busy machine, a server that closes an idle connection before the client does can reset a request.
  const server = createServer({ keepAliveTimeout: 300_000 }, async (request, response) => {
    const closed = new AbortController();
    response.once('close', () => closed.abort());
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part as Buffer);
    const body = JSON.parse(Buffer.concat(parts).toString() || '{}') as ModelRequest['body'];
    const { method = '', url = '' } = request;
    const path = url.replace(/^\/v1/, '');
    const received = { method, path, headers: request.headers, body, closed: closed.signal };
    requests.push(received);
    await answer(received, response);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}/v1`, requests };
}

const ENVELOPE = {
  id: 'chatcmpl-1',
  created: 1,
  model: 'gpt-4.1-mini-2025',
  system_fingerprint: 'fp_1',
};
const USAGE = { prompt_tokens: 30, completion_tokens: 5, total_tokens: 35 };

/** Answers with a text in the dialect of the request, streamed when the request asks for a stream. */
export function answerText(request: ModelRequest, response: ServerResponse, text: string): void {
  if (request.path === '/messages') {
    answerMessage(request, response, text);
    return;
  }
  if (request.path === '/responses') {
    answerResponse(request, response, text);
    return;
  }
  const { body } = request;
  if (body.stream !== true) {
    const message = { role: 'assistant', content: text, annotations: [] };
    const choices = [{ index: 0, message, finish_reason: 'stop', logprobs: null }];
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ ...ENVELOPE, object: 'chat.completion', choices, usage: USAGE }));
    return;
  }
  response.setHeader('content-type', 'text/event-stream');
  for (const content of text.split(/(?<= )/)) response.write(chunk({ content }));
  response.write(chunk({}, 'stop'));
  const last = { ...ENVELOPE, object: 'chat.completion.chunk', choices: [], usage: USAGE };
  response.end(`data: ${JSON.stringify(last)}\n\ndata: [DONE]\n\n`);
}

/** Answers a chat completions or responses request with a call of its first tool, without streaming. */
export function answerToolCall({ path, body }: ModelRequest, response: ServerResponse): void {
  calls += 1;
  const [tool] = body.tools as { readonly name?: string; readonly function?: { name: string } }[];
  const called = {
    name: tool?.name ?? tool?.function?.name ?? '',
    arguments: JSON.stringify({ ticket: String(calls) }),
  };
  const id = `call_${calls}`;
  response.setHeader('content-type', 'application/json');
  if (path === '/responses') {
    const item = { type: 'function_call', id: `fc_${calls}`, call_id: id, ...called };
    const envelope = { id: `resp_t${calls}`, object: 'response', created_at: 1, model: 'gpt-4.1' };
    const output = [{ ...item, status: 'completed' }];
    const done = { ...envelope, status: 'completed', output, usage: RESPONSE_USAGE };
    response.end(JSON.stringify(done));
    return;
  }
  const tool_calls = [{ id, type: 'function', function: called }];
  const message = { role: 'assistant', content: null, tool_calls };
  const choices = [{ index: 0, message, finish_reason: 'tool_calls', logprobs: null }];
  // Agents identify answers by id, so each answer has a unique id.
  const envelope = { ...ENVELOPE, id: `chatcmpl-t${calls}`, object: 'chat.completion' };
  response.end(JSON.stringify({ ...envelope, choices, usage: USAGE }));
}
let calls = 0;

/** Returns one event of a chat completions stream. */
export function chunk(delta: object, finish: string | null = null): string {
  const choices = [{ index: 0, delta, finish_reason: finish }];
  return `data: ${JSON.stringify({ ...ENVELOPE, object: 'chat.completion.chunk', choices })}\n\n`;
}

const MESSAGE_USAGE = {
  input_tokens: 10,
  cache_creation_input_tokens: 12,
  cache_read_input_tokens: 8,
  cache_creation: { ephemeral_5m_input_tokens: 8, ephemeral_1h_input_tokens: 4 },
  output_tokens: 5,
};

/** Answers a request of the Messages API with a text, streamed when the request asks for a stream. */
function answerMessage({ body }: ModelRequest, response: ServerResponse, text: string): void {
  const message = { id: 'msg_1', type: 'message', role: 'assistant', model: 'claude-1' };
  const end = { stop_reason: 'end_turn', stop_sequence: null };
  if (body.stream !== true) {
    const content = [{ type: 'text', text, citations: null }];
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ ...message, ...end, content, usage: MESSAGE_USAGE }));
    return;
  }
  response.setHeader('content-type', 'text/event-stream');
  const usage = { ...MESSAGE_USAGE, output_tokens: 1 };
  const started = { ...message, content: [], stop_reason: null, stop_sequence: null, usage };
  response.write(event({ type: 'message_start', message: started }));
  const block = { type: 'text', text: '' };
  response.write(event({ type: 'content_block_start', index: 0, content_block: block }));
  response.write(event({ type: 'ping' }));
  for (const part of text.split(/(?<= )/)) {
    const delta = { type: 'text_delta', text: part };
    response.write(event({ type: 'content_block_delta', index: 0, delta }));
  }
  response.write(event({ type: 'content_block_stop', index: 0 }));
  response.write(event({ type: 'message_delta', delta: end, usage: { output_tokens: 5 } }));
  response.end(event({ type: 'message_stop' }));
}

const RESPONSE_USAGE = {
  input_tokens: 30,
  input_tokens_details: { cached_tokens: 10 },
  output_tokens: 5,
  output_tokens_details: { reasoning_tokens: 2 },
  total_tokens: 35,
};
let responses = 0;

/**
 * Answers a request of the Responses API with a text, streamed when the request asks for a stream. The ids in the
 * answer are unique.
 */
function answerResponse({ body }: ModelRequest, response: ServerResponse, text: string): void {
  responses += 1;
  const [id, item_id] = [`resp_${responses}`, `msg_${responses}`];
  const envelope = { id, object: 'response', created_at: 1, model: 'gpt-4.1-mini-2025', tools: [] };
  const content = [{ type: 'output_text', text, annotations: [] }];
  const item = { type: 'message', id: item_id, role: 'assistant', status: 'completed', content };
  const done = { ...envelope, status: 'completed', output: [item], usage: RESPONSE_USAGE };
  if (body.stream !== true) {
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify(done));
    return;
  }
  response.setHeader('content-type', 'text/event-stream');
  const started = { ...envelope, status: 'in_progress', output: [] };
  const at = { item_id, output_index: 0, content_index: 0 };
  const part = { type: 'output_text', text: '', annotations: [] };
  const events = [
    { type: 'response.created', response: started },
    { type: 'response.in_progress', response: started },
    { type: 'response.output_item.added', output_index: 0, item: { ...item, content: [] } },
    { type: 'response.content_part.added', ...at, part },
    ...text
      .split(/(?<= )/)
      .map((delta) => ({ type: 'response.output_text.delta', ...at, delta, logprobs: [] })),
    { type: 'response.output_text.done', ...at, text, logprobs: [] },
    { type: 'response.content_part.done', ...at, part: { ...part, text } },
    { type: 'response.output_item.done', output_index: 0, item },
    { type: 'response.completed', response: done },
  ];
  for (const [sequence_number, data] of events.entries()) {
    response.write(event({ ...data, sequence_number }));
  }
  response.end();
}

/** Returns one server-sent event with an `event` field. */
export function event(data: { readonly type: string } & Readonly<Record<string, unknown>>): string {
  return `event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`;
}
