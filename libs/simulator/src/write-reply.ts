import type { ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Completion } from './completion.ts';
import type { Reply } from './script.ts';

/** How the simulator's answer ended. */
export type Outcome = 'answered' | 'cut' | 'aborted';

const CHUNK_SIZE = 24;

/** An error of an OpenAI-compatible server. */
export interface OpenAiError {
  readonly status: number;
  readonly message: string;
  readonly code?: string;
  readonly param?: string;
  /** Seconds, for the Retry-After header. */
  readonly retryAfter?: number;
}

/** Sends `error` with its status and the body that the OpenAI SDK parses. */
export function writeError(response: ServerResponse, error: OpenAiError): void {
  const { status, message, code = null, param = null } = error;
  const body = JSON.stringify({ error: { message, type: errorType(status), param, code } });
  response.writeHead(status, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(body),
    ...(error.retryAfter === undefined ? {} : { 'retry-after': String(error.retryAfter) }),
  });
  response.end(body);
}

/**
 * Sends `completion`, or the `garbage` of the reply, as one body; with `cut_after_chunks`, sends half of the body and
 * drops the connection.
 * @param signal aborted when the client disconnects
 */
export async function writeBody(
  response: ServerResponse,
  completion: Completion,
  reply: Reply,
  signal: AbortSignal,
): Promise<Outcome> {
  await pause(reply.delay_ms, signal);
  const { text, toolCalls, finishReason, usage } = completion;
  const message = {
    role: 'assistant',
    content: text,
    refusal: null,
    ...(toolCalls.length === 0 ? {} : { tool_calls: toolCalls.map(toWire) }),
  };
  const body = Buffer.from(
    reply.garbage ??
      JSON.stringify({
        ...envelope(completion, 'chat.completion'),
        choices: [{ index: 0, message, logprobs: null, finish_reason: finishReason }],
        ...(usage === undefined ? {} : { usage }),
      }),
  );
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': body.length });
  if (reply.cut_after_chunks === undefined) {
    response.end(body);
    return 'answered';
  }
  await write(response, body.subarray(0, body.length / 2));
  response.destroy();
  return 'cut';
}

/** How a stream is sent. */
interface StreamOptions {
  readonly reply: Reply;
  readonly includeUsage: boolean;
  /** Aborted when the client disconnects. */
  readonly signal: AbortSignal;
}

/**
 * Sends `completion` as server-sent events: the role, the content and tool calls in pieces,
 * the finish reason, the usage when requested, and `[DONE]`.
 */
export async function writeStream(
  response: ServerResponse,
  completion: Completion,
  { reply, includeUsage, signal }: StreamOptions,
): Promise<Outcome> {
  await pause(reply.delay_ms, signal);
  response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' });
  const { finishReason, usage } = completion;
  const send = (choices: readonly object[], withUsage: object | null = null): Promise<void> =>
    write(
      response,
      event({
        ...envelope(completion, 'chat.completion.chunk'),
        choices,
        ...(includeUsage ? { usage: withUsage } : {}),
      }),
    );
  const delta = (content: object): Promise<void> =>
    send([{ index: 0, delta: content, logprobs: null, finish_reason: null }]);

  const chunks = deltasOf(completion, reply.chunk_size ?? CHUNK_SIZE);
  if (chunks.length === 0 && reply.garbage !== undefined) {
    response.end(reply.garbage);
    return 'answered';
  }
  await delta({ role: 'assistant', content: completion.toolCalls.length > 0 ? null : '' });
  for (const [index, chunk] of chunks.entries()) {
    if (index === reply.cut_after_chunks) break;
    await pause(reply.chunk_delay_ms, signal);
    await delta(chunk);
    if (index === 0 && reply.garbage !== undefined) await write(response, reply.garbage);
  }
  if (reply.cut_after_chunks !== undefined) {
    response.destroy();
    return 'cut';
  }
  if (finishReason !== null) {
    await send([{ index: 0, delta: {}, logprobs: null, finish_reason: finishReason }]);
  }
  if (includeUsage && usage !== undefined) await send([], usage);
  if (!reply.omit?.includes('done')) await write(response, 'data: [DONE]\n\n');
  response.end();
  return 'answered';
}

/** Sleeps; rejects with an AbortError when the client disconnects. */
export async function pause(ms: number | undefined, signal: AbortSignal): Promise<void> {
  if (ms !== undefined && ms > 0) await sleep(ms, undefined, { signal });
  signal.throwIfAborted();
}

function deltasOf({ text, toolCalls }: Completion, size: number): object[] {
  const deltas: object[] = pieces(text ?? '', size).map((content) => ({ content }));
  for (const [index, call] of toolCalls.entries()) {
    const { id, type, function: fn } = toWire(call);
    deltas.push({ tool_calls: [{ index, id, type, function: { name: fn.name, arguments: '' } }] });
    for (const piece of pieces(fn.arguments, size)) {
      deltas.push({ tool_calls: [{ index, function: { arguments: piece } }] });
    }
  }
  return deltas;
}

/** Splits `text` into pieces of `size` code points, never inside a surrogate pair. */
function pieces(text: string, size: number): string[] {
  const characters = [...text];
  return Array.from({ length: Math.ceil(characters.length / size) }, (_, index) =>
    characters.slice(index * size, (index + 1) * size).join(''),
  );
}

function toWire(call: Completion['toolCalls'][number]) {
  return {
    id: call.id,
    type: 'function',
    function: { name: call.name, arguments: call.arguments },
  };
}

function envelope({ id, created, model }: Completion, object: string) {
  return { id, object, created, model, system_fingerprint: 'fp_simulator' };
}

function event(data: object): string {
  return `data: ${JSON.stringify(data)}\n\n`;
}

/** Resolves once the bytes are flushed to the socket, so that a later cut does not lose them. */
function write(response: ServerResponse, data: string | Uint8Array): Promise<void> {
  return new Promise((resolve, reject) => {
    response.write(data, (error) => (error ? reject(error) : resolve()));
  });
}

function errorType(status: number): string {
  if (status === 429) return 'rate_limit_error';
  return status >= 500 ? 'server_error' : 'invalid_request_error';
}
