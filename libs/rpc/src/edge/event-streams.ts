import {
  type DescMethodServerStreaming,
  fromJson,
  type JsonObject,
  type Message,
  ScalarType,
  toJson,
} from '@bufbuild/protobuf';
import { codeToHttpStatus, errorToJson } from '@connectrpc/connect/protocol-connect';
import { InternalError, InvalidRequestError, NotImplementedError } from '@writ/kernel';
import type { Calls } from '../calls/calls.ts';
import { encodeResponse } from '../calls/encode-response.ts';
import type { ServedMethod, ServedService } from '../calls/served-service.ts';
import type { ServerCall } from '../calls/server-call.ts';
import { toConnectError } from '../errors/connect-errors.ts';
import type { RpcLimits } from '../limits.ts';
import { markAuthenticated } from './universal-request.ts';
import type { WebHook, WebRequest, WebResponse } from './web.ts';

/** A server-streaming RPC that is also served as `GET`, for curl and for scripts in a browser. */
export interface EventStream {
  readonly method: DescMethodServerStreaming;
  /** The path, with fields of the request in braces, such as `/v1/runs/{run_id}/events`. */
  readonly path: string;
  /** The field of the request for the id of the last received event; undefined when events have no ids. */
  readonly resumeField?: string;
  /** Whether a response is a heartbeat, which is sent as a comment in server-sent events. */
  isHeartbeat(response: Message): boolean;
  /** Returns the id of a response, after which a client can resume the stream; undefined if the response has no id. */
  idOf(response: Message): string | undefined;
}

/** Options of {@link eventStreams}. */
export interface EventStreamOptions {
  readonly streams: readonly EventStream[];
  readonly services: readonly ServedService[];
  readonly calls: Calls;
  readonly limits: Required<RpcLimits>;
}

const SSE = 'text/event-stream';
const NDJSON = 'application/x-ndjson';

/**
 * Maximum wait for the first response before the headers are sent, ms, so that the client sees that it is connected.
 */
const HEADERS_MS = 500;

/**
 * Serves streams over plain HTTP, as server-sent events or as JSON lines (SYS-2). A stream is a call of its RPC: the
 * same gate, validation, limits and handler.
 */
export function eventStreams({ streams, services, calls, limits }: EventStreamOptions): WebHook {
  const methods = services.flatMap((service) => service.methods);
  const served = streams.map((stream) => {
    const found = methods.find(({ implementation }) => implementation.method === stream.method);
    if (found === undefined) throw new InternalError('INTERNAL', `${stream.path} has no handler.`);
    return { stream, served: found, pattern: patternOf(stream.path) };
  });
  return (request, response) => {
    const [path = '', query = ''] = (request.url ?? '').split('?', 2);
    for (const { stream, served: method, pattern } of served) {
      const match = pattern.exec(path);
      if (match === null) continue;
      // A GET has no content; content that is sent nevertheless is discarded.
      request.resume();
      const call = calls.open(method, incomingCall(request));
      const target = { stream, served: method, call, limits };
      void new StreamResponse(target, request, response).run({ ...match.groups }, query);
      return true;
    }
    return false;
  };
}

function patternOf(path: string): RegExp {
  return new RegExp(`^${path.replaceAll(/\{(\w+)\}/g, '(?<$1>[^/]+)')}$`);
}

function incomingCall(request: WebRequest) {
  const { headers } = request;
  return {
    onAuthenticated: () => markAuthenticated(request),
    rpcSystem: 'http',
    timeoutMs: undefined,
    header: (name: string): string | undefined => {
      const value = headers[name.toLowerCase()];
      return Array.isArray(value) ? value.join(', ') : value;
    },
  };
}

interface Target {
  readonly stream: EventStream;
  readonly served: ServedMethod;
  readonly call: ServerCall;
  readonly limits: Required<RpcLimits>;
}

/** One response with a stream of events. */
class StreamResponse {
  readonly #target: Target;
  readonly #request: WebRequest;
  readonly #response: WebResponse;
  readonly #type: typeof SSE | typeof NDJSON;

  constructor(target: Target, request: WebRequest, response: WebResponse) {
    this.#target = target;
    this.#request = request;
    this.#response = response;
    this.#type = accepts(request, SSE) ? SSE : NDJSON;
  }

  /** Admits the call, then writes what its handler returns. Never rejects. */
  async run(fields: Record<string, string>, query: string): Promise<void> {
    const { call } = this.#target;
    const onClose = (): void => call.disconnect();
    this.#response.once('close', onClose).on('error', onClose);
    try {
      await call.admit();
      await this.#write(call.handleStream(this.#message(fields, query)));
      call.end();
    } catch (error) {
      this.#fail(call.end(error));
    }
    this.#response.off('close', onClose);
    this.#response.end();
  }

  /** The request message: fields of the path, of the query, and the id of the last received event. */
  #message(fields: Record<string, string>, query: string): Message {
    const { method, headers } = this.#request;
    if (method !== 'GET') {
      throw new NotImplementedError('UNKNOWN_METHOD', 'This path is served as GET only.');
    }
    const { stream } = this.#target;
    const lastId = headers['last-event-id'];
    const values = { ...Object.fromEntries(new URLSearchParams(query)), ...fields };
    if (stream.resumeField !== undefined && typeof lastId === 'string' && lastId !== '') {
      values[stream.resumeField] = lastId;
    }
    try {
      return fromJson(stream.method.input, toFields(stream.method, values));
    } catch (cause) {
      const message = cause instanceof Error ? cause.message : String(cause);
      const type = { message_type: stream.method.input.typeName };
      throw new InvalidRequestError('MALFORMED_MESSAGE', message, type, { cause });
    }
  }

  async #write(messages: AsyncIterable<Message>): Promise<void> {
    let isFirst = true;
    const timer = setTimeout(() => this.#open(), HEADERS_MS);
    try {
      for await (const message of messages) {
        if (isFirst) this.#open();
        isFirst = false;
        await this.#send(this.#encode(message));
      }
    } finally {
      clearTimeout(timer);
    }
    // A client that reconnects after the last event receives no events. The status 204 tells an EventSource not to
    // reconnect.
    if (isFirst && !this.#response.headersSent) this.#response.writeHead(204);
  }

  #open(): void {
    if (this.#response.headersSent) return;
    this.#response.writeHead(200, {
      'content-type': this.#type === SSE ? `${SSE}; charset=utf-8` : NDJSON,
      'cache-control': 'no-store',
      // Disables the response buffering of proxies such as nginx.
      'x-accel-buffering': 'no',
    });
    this.#response.flushHeaders();
  }

  #encode(message: Message): string {
    const { stream, served, limits } = this.#target;
    encodeResponse(served, message, limits.maxMessageBytes);
    const json = JSON.stringify(toJson(stream.method.output, message));
    if (this.#type === NDJSON) return `${json}\n`;
    if (stream.isHeartbeat(message)) return ': heartbeat\n\n';
    const id = stream.idOf(message);
    return `${id === undefined ? '' : `id: ${id}\n`}data: ${json}\n\n`;
  }

  /**
   * Writes a message. Resolves when the write buffer has drained, so that at most one message is buffered for a slow
   * reader, or when the call is aborted. Disconnects a client that reads nothing for `maxUnaryMs`.
   */
  async #send(text: string): Promise<void> {
    const response = this.#response;
    const { call, limits } = this.#target;
    if (response.write(text) || call.signal.aborted) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(() => response.destroy(), limits.maxUnaryMs);
      const done = (): void => {
        clearTimeout(timer);
        response.off('drain', done);
        call.signal.removeEventListener('abort', done);
        resolve();
      };
      response.once('drain', done);
      // Does not listen for `close`, because that event may already have been emitted before this write. The signal is
      // aborted after a `close` event too.
      call.signal.addEventListener('abort', done, { once: true });
    });
  }

  /** Sends the error of the RPC: before the headers as JSON with its HTTP status, later as the last event. */
  #fail(error: unknown): void {
    if (this.#response.destroyed) return;
    const thrown = toConnectError(error);
    const json = JSON.stringify(errorToJson(thrown, undefined));
    if (!this.#response.headersSent) {
      const headers = { 'content-type': 'application/json' };
      this.#response.writeHead(codeToHttpStatus(thrown.code), headers);
      this.#response.write(json);
    } else if (this.#type === SSE) this.#response.write(`event: failure\ndata: ${json}\n\n`);
    else this.#response.write(`{"error":${json}}\n`);
  }
}

/** Converts the parameters of a URL to the JSON of the request; `true` and `false` of a boolean field are booleans. */
function toFields(
  { input }: DescMethodServerStreaming,
  values: Readonly<Record<string, string>>,
): JsonObject {
  const isBoolean = (name: string): boolean =>
    input.fields.some(
      (field) => [field.name, field.jsonName].includes(name) && field.scalar === ScalarType.BOOL,
    );
  const entries = Object.entries(values).map(([name, text]) => [
    name,
    isBoolean(name) && /^(true|false)$/.test(text) ? text === 'true' : text,
  ]);
  return Object.fromEntries(entries) as JsonObject;
}

function accepts({ headers }: WebRequest, type: string): boolean {
  return (headers.accept ?? '').split(',').some((each) => each.split(';')[0]?.trim() === type);
}
