/**
 * A model in a separate process that answers at once: first with a call of the tool, then, when the conversation
 * contains the tool result, with the answer. It counts requests by the first path segment, which names the calling
 * peer; GET returns the counts.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { ANSWER } from './serve-peer.ts';

/** Number of requests that the model has received from a peer. */
export interface ModelCounts {
  /** Requests without the result of a tool. */
  readonly first: number;
  /** Requests with the result of a tool. */
  readonly second: number;
  /** The highest call count in the tool results. */
  readonly toolCalls: number;
}

interface ChatRequest {
  readonly model: string;
  readonly stream?: boolean;
  readonly messages: readonly { readonly role: string; readonly content?: unknown }[];
}

const NONE: ModelCounts = { first: 0, second: 0, toolCalls: 0 };
const USAGE = {
  prompt_tokens: 42,
  completion_tokens: 9,
  total_tokens: 51,
  prompt_tokens_details: { cached_tokens: 0 },
  completion_tokens_details: { reasoning_tokens: 0 },
};

const counts = new Map<string, ModelCounts>();
let answers = 0;

function count(peer: string, { messages }: ChatRequest): boolean {
  const before = counts.get(peer) ?? NONE;
  const results = messages.filter(({ role }) => role === 'tool');
  const [, calls = '0'] = /calls\D+(\d+)/.exec(JSON.stringify(results)) ?? [];
  const isFirst = results.length === 0;
  counts.set(peer, {
    first: before.first + (isFirst ? 1 : 0),
    second: before.second + (isFirst ? 0 : 1),
    toolCalls: Math.max(before.toolCalls, Number(calls)),
  });
  return isFirst;
}

function answer(request: ChatRequest, isFirst: boolean, res: ServerResponse): void {
  answers += 1;
  const call = { name: 'no_op', arguments: '{"x":"1"}' };
  const message = isFirst
    ? {
        role: 'assistant',
        content: null,
        tool_calls: [{ id: `call_${answers}`, type: 'function', function: call }],
      }
    : { role: 'assistant', content: ANSWER };
  const finish_reason = isFirst ? 'tool_calls' : 'stop';
  const head = { id: `chatcmpl-${answers}`, created: 1_750_000_000, model: request.model };
  if (request.stream !== true) {
    const choices = [{ index: 0, message, finish_reason, logprobs: null }];
    const body = JSON.stringify({ ...head, object: 'chat.completion', choices, usage: USAGE });
    const headers = {
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(body),
    };
    res.writeHead(200, headers).end(body);
    return;
  }
  const event = (data: object): string =>
    `data: ${JSON.stringify({ ...head, object: 'chat.completion.chunk', ...data })}\n\n`;
  const delta = {
    ...message,
    tool_calls: message.tool_calls?.map((each, index) => ({ index, ...each })),
  };
  const events = [
    { choices: [{ index: 0, delta, finish_reason: null }] },
    { choices: [{ index: 0, delta: {}, finish_reason }] },
    { choices: [], usage: USAGE },
  ];
  res.writeHead(200, { 'content-type': 'text/event-stream' });
  res.end(`${events.map(event).join('')}data: [DONE]\n\n`);
}

function handle(req: IncomingMessage, res: ServerResponse): void {
  const [, peer = ''] = (req.url ?? '').split('/');
  if (req.method === 'GET') {
    res.end(JSON.stringify(counts.get(peer) ?? NONE));
    return;
  }
  const parts: Buffer[] = [];
  req.on('data', (part: Buffer) => parts.push(part));
  req.on('end', () => {
    const request = JSON.parse(Buffer.concat(parts).toString('utf8')) as ChatRequest;
    answer(request, count(peer, request), res);
  });
}

const server = createServer(handle);
server.listen(0, '127.0.0.1', () => {
  console.log(`model listens on 127.0.0.1:${(server.address() as AddressInfo).port}`);
});
process.once('SIGTERM', () => process.exit());
