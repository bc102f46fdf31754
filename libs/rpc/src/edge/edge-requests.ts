import { constants, type Http2ServerRequest } from 'node:http2';
import type { UniversalHandler, UniversalServerResponse } from '@connectrpc/connect/protocol';
import { universalResponseToNodeResponse } from '@connectrpc/connect-node';
import { NotImplementedError } from '@writ/kernel';
import type { Logger } from '@writ/telemetry';
import { PacedQueue } from '../calls/paced-queue.ts';
import { toGrpcStatus } from '../errors/grpc-errors.ts';
import { Cors } from './cors.ts';
import { universalRequest } from './universal-request.ts';
import type { WebHook, WebRequest, WebResponse } from './web.ts';

interface Parts {
  readonly handlers: ReadonlyMap<string, UniversalHandler>;
  /** Paths whose requests have no end of their own. */
  readonly endless: ReadonlySet<string>;
  /** Paths of reserved methods and of health checks, whose requests go before others. */
  readonly urgent: ReadonlySet<string>;
  /** Time limit for receiving any other request, ms. */
  readonly requestMs: number;
  /** Ends the requests whose clients have disconnected. */
  readonly disconnections: PacedQueue;
  readonly allowedOrigins: readonly string[];
  readonly events: WebHook;
  readonly web: WebHook | undefined;
  readonly log: Logger;
}

/** Returns the HTTP request handler of the edge: CORS preflights, RPCs, event streams, then the web hook. */
export function edgeRequests(parts: Parts): (request: WebRequest, response: WebResponse) => void {
  const { handlers, events, web, endless, urgent, requestMs } = parts;
  const cors = new Cors(parts.allowedOrigins);
  const turns = new PacedQueue();
  const begin = (path: string, request: WebRequest, response: WebResponse): void => {
    const handler = handlers.get(path);
    if (handler !== undefined) {
      if (!endless.has(path)) limitRequest(request, response, requestMs);
      void handleRpc(handler, request, response, parts);
    } else if (isGrpc(request)) sendUnimplemented(path, response);
    else if (events(request, response) || web?.(request, response) === true)
      limitRequest(request, response, requestMs);
    else sendNotFound(path, response);
  };
  return (request, response) => {
    if (cors.handle(request, response)) return;
    const [path = ''] = (request.url ?? '').split('?', 1);
    if (urgent.has(path)) return begin(path, request, response);
    let isClosed = false;
    const onClose = (): void => {
      isClosed = true;
    };
    response.once('close', onClose);
    turns.add(() => {
      response.off('close', onClose);
      // No event would end the call of a stream that was closed before it began.
      if (!isClosed) begin(path, request, response);
    });
  };
}

/**
 * Time added to the limit of a request, ms, so that the deadline of the call expires first: its error names the method.
 */
const DEADLINE_MARGIN_MS = 1_000;

/**
 * Ends the connection or stream of a request that is not received in time: a call is counted before its content is
 * read, so that unfinished requests would fill the limits permanently (BD-2).
 */
function limitRequest(request: WebRequest, response: WebResponse, ms: number): void {
  const timer = setTimeout(() => {
    if (isReceived(request) || response.writableEnded) return;
    const message = `The request was not received within ${ms} ms.`;
    if (!response.headersSent) {
      response.writeHead(408, { 'content-type': 'application/json' });
      response.write(JSON.stringify({ code: 'deadline_exceeded', message }));
    }
    response.end(() => stopReceiving(request));
  }, ms + DEADLINE_MARGIN_MS);
  const clear = (): void => clearTimeout(timer);
  request.once('end', clear).once('close', clear);
}

/** A handler need not read a request without content. */
function isReceived(request: WebRequest): boolean {
  if (request.readableEnded) return true;
  if (request.httpVersionMajor < 2) return request.complete;
  return (request as unknown as Http2ServerRequest).stream.endAfterHeaders;
}

/**
 * Fails the reader of the content, which would otherwise look complete over HTTP/2. There only the stream ends: a reset
 * without error asks the client to send no more (RFC 9113, section 8.1).
 */
function stopReceiving(request: WebRequest): void {
  request.destroy();
  if (request.httpVersionMajor >= 2)
    (request as unknown as Http2ServerRequest).stream.close(constants.NGHTTP2_NO_ERROR);
}

async function handleRpc(
  handler: UniversalHandler,
  request: WebRequest,
  response: WebResponse,
  { disconnections, log }: Parts,
): Promise<void> {
  try {
    const universal = universalRequest(request, response, disconnections);
    const { status, header, body, trailer } = await handler(universal);
    const universalResponse: UniversalServerResponse = {
      status,
      ...(header === undefined ? {} : { header }),
      ...(body === undefined ? {} : { body }),
      // Read after the body, when it is complete.
      get trailer() {
        return trailer === undefined ? new Headers() : withPlainMessage(trailer);
      },
    };
    await universalResponseToNodeResponse(universalResponse, response);
  } catch (error) {
    // The call itself has completed or was cancelled; the connection was lost while writing.
    const problem = error instanceof Error ? error.name : typeof error;
    log.debug({ rpc: handler.requestPath.slice(1), problem }, 'failed to write response');
    if (!response.headersSent) response.writeHead(400);
    response.end();
  }
}

/** Excludes gRPC-Web: its clients understand a plain 404. */
function isGrpc({ headers }: WebRequest): boolean {
  return /^application\/grpc(\+|;|$)/.test(headers['content-type'] ?? '');
}

/**
 * Connect escapes more characters of the message than gRPC requires, and grpc-js clients do not
 * unescape them: they would show `goal%3A must be …`.
 */
function withPlainMessage(trailer: Headers): Headers {
  const message = trailer.get('grpc-message');
  if (message !== null) trailer.set('grpc-message', encodeURI(decodeURIComponent(message)));
  return trailer;
}

function sendUnimplemented(path: string, response: WebResponse): void {
  const { code, details, metadata } = toGrpcStatus(
    new NotImplementedError('UNKNOWN_METHOD', `The server does not implement method ${path}.`),
  );
  response.writeHead(200, { 'content-type': 'application/grpc' });
  response.addTrailers({
    'grpc-status': String(code),
    'grpc-message': encodeURI(details),
    ...(metadata.toHttp2Headers() as Record<string, string>),
  });
  response.end();
}

function sendNotFound(path: string, response: WebResponse): void {
  response.writeHead(404, { 'content-type': 'application/json' });
  const message = `Not found: ${path}.`;
  response.end(JSON.stringify({ code: 'unimplemented', message }));
}
