import { constants, type Http2ServerRequest } from 'node:http2';
import type { UniversalHandler, UniversalServerResponse } from '@connectrpc/connect/protocol';
import { universalResponseToNodeResponse } from '@connectrpc/connect-node';
import { NotImplementedError } from '@writ/kernel';
import type { Logger } from '@writ/telemetry';
import { PacedQueue } from '../calls/paced-queue.ts';
import { toGrpcStatus } from '../errors/grpc-errors.ts';
import { Cors } from './cors.ts';
import type { OpenResponses } from './open-responses.ts';
import { universalRequest } from './universal-request.ts';
import type { WebHook, WebRequest, WebResponse } from './web.ts';

interface Parts {
  readonly handlers: ReadonlyMap<string, UniversalHandler>;
  /** Paths of bidirectional streaming methods, to whose requests the time limit does not apply. */
  readonly bidi: ReadonlySet<string>;
  /** Paths of reserved methods and of health checks, whose requests are handled before others. */
  readonly urgent: ReadonlySet<string>;
  /** Time limit for receiving any other request, ms. */
  readonly requestMs: number;
  /** Ends the requests whose clients have disconnected. */
  readonly disconnections: PacedQueue;
  readonly allowedOrigins: readonly string[];
  readonly events: WebHook;
  readonly web: WebHook | undefined;
  /** The responses of `web` that have not ended. */
  readonly responses: OpenResponses;
  readonly log: Logger;
}

/** Returns the HTTP request handler of the edge: CORS preflights, RPCs, event streams, then the web hook. */
export function edgeRequests(parts: Parts): (request: WebRequest, response: WebResponse) => void {
  const { handlers, events, web, responses, bidi, urgent, requestMs } = parts;
  const cors = new Cors(parts.allowedOrigins);
  const turns = new PacedQueue();
  const begin = (path: string, request: WebRequest, response: WebResponse): void => {
    const handler = handlers.get(path);
    if (handler !== undefined) {
      if (!bidi.has(path)) limitRequest(request, response, requestMs);
      void handleRpc(handler, request, response, parts);
    } else if (isGrpc(request)) sendUnimplemented(path, response);
    else if (events(request, response)) limitRequest(request, response, requestMs);
    else if (web?.(request, response) === true) {
      responses.add(response);
      limitRequest(request, response, requestMs);
    } else sendNotFound(path, response);
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
      // If the stream is already closed, no further event would end its call.
      if (!isClosed) begin(path, request, response);
    });
  };
}

/**
 * Time added to the limit of a request, ms, so that the deadline of the call expires first, because the deadline error
 * names the method.
 */
const DEADLINE_MARGIN_MS = 1_000;

/**
 * Ends the connection or stream of a request that is not received in time: a call counts against the limits before its
 * content is read, so unfinished requests would otherwise exhaust the limits permanently (BD-2).
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

/**
 * Whether the client has sent the whole request; true for a request without content even if the handler does not read
 * it.
 */
function isReceived(request: WebRequest): boolean {
  if (request.readableEnded) return true;
  if (request.httpVersionMajor < 2) return request.complete;
  return (request as unknown as Http2ServerRequest).stream.endAfterHeaders;
}

/**
 * Stops receiving the content. The reader gets an error, because the content would otherwise look complete over HTTP/2.
 * Over HTTP/2 only the stream is closed, not the connection: a reset with NO_ERROR asks the client to stop sending (RFC
 * 9113, section 8.1).
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
      // A getter, because the trailers are complete only after the body has been read.
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

/** Whether a request uses gRPC. Returns false for gRPC-Web, whose clients understand a plain 404. */
function isGrpc({ headers }: WebRequest): boolean {
  return /^application\/grpc(\+|;|$)/.test(headers['content-type'] ?? '');
}

/**
 * Replaces the encoding of `grpc-message` in `trailer`. Connect percent-encodes more characters than gRPC requires, and
 * grpc-js clients do not decode the additional ones: they would show `goal%3A must be …`.
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
