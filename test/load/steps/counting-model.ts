import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

/** A model that calls its tool with the next number until it reaches a limit. */
export interface CountingModel {
  /** Base URL for OpenAI clients. */
  readonly url: string;
  /** Called for each request with the limit, the next number and the last user message. */
  onRequest: (limit: number, next: number, goal: string) => void;
  close(): Promise<void>;
}

interface Message {
  readonly role: string;
  readonly content?: unknown;
}

/**
 * Starts the model on a free port. It is stateless: the limit is in the system prompt (`Count to 50.`), the
 * last number in the last tool message.
 * @param delayMs time after which it answers; default at once
 */
export async function startCountingModel(delayMs = 0): Promise<CountingModel> {
  const model: Pick<CountingModel, 'onRequest'> = { onRequest: () => undefined };
  const server = createServer((request, response) => {
    void answer(request, response, { onRequest: model.onRequest, delayMs });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return Object.assign(model, {
    url: `http://127.0.0.1:${port}/v1`,
    close: () =>
      new Promise<void>((resolve) => {
        server.closeAllConnections();
        server.close(() => resolve());
      }),
  });
}

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  { onRequest, delayMs }: { onRequest: CountingModel['onRequest']; delayMs: number },
): Promise<void> {
  let body = '';
  for await (const chunk of request) body += String(chunk);
  const { messages, stream, tools } = JSON.parse(body) as {
    readonly messages: readonly Message[];
    readonly tools?: readonly { readonly function: { readonly name: string } }[];
    readonly stream?: boolean;
  };
  const textOf = (role: string): string => {
    const { content = '' } = messages.findLast((message) => message.role === role) ?? {};
    return typeof content === 'string' ? content : JSON.stringify(content);
  };
  const last = messages.at(-1)?.role === 'tool' ? numberIn(textOf('tool')) : 0;
  const limit = numberIn(textOf('system'));
  const next = last + 1;
  onRequest(limit, next, textOf('user'));
  if (delayMs > 0) await sleep(delayMs);
  const message =
    next > limit
      ? { role: 'assistant', content: `Counted to ${limit}.` }
      : {
          role: 'assistant',
          content: null,
          tool_calls: [toolCall(next, tools?.[0]?.function.name)],
        };
  const finish_reason = next > limit ? 'stop' : 'tool_calls';
  const usage = { prompt_tokens: 100, completion_tokens: 10, total_tokens: 110 };
  const head = { id: `chat-${next}`, created: 0, model: 'counting' };
  if (stream !== true) {
    response.writeHead(200, { 'content-type': 'application/json' });
    const choices = [{ index: 0, message, finish_reason }];
    response.end(JSON.stringify({ ...head, object: 'chat.completion', choices, usage }));
    return;
  }
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  const object = 'chat.completion.chunk';
  const send = (rest: object) =>
    response.write(`data: ${JSON.stringify({ ...head, object, ...rest })}\n\n`);
  send({ choices: [{ index: 0, delta: message, finish_reason }] });
  send({ choices: [], usage });
  response.end('data: [DONE]\n\n');
}

/** Calls the first tool of the request; a delegation is a tool that takes a task. */
function toolCall(n: number, name = 'count') {
  const args = name.startsWith('handoff_') ? { task: 'Count.' } : { n };
  const call = { name, arguments: JSON.stringify(args) };
  return { index: 0, id: `call_${n}`, type: 'function', function: call };
}

function numberIn(text: string): number {
  return Number(/\d+/.exec(text)?.[0] ?? 0);
}
