import type { UniversalHandler, UniversalServerResponse } from '@connectrpc/connect/protocol';
import {
  universalRequestFromNodeRequest,
  universalResponseToNodeResponse,
} from '@connectrpc/connect-node';
import { NotImplementedError } from '@writ/kernel';
import type { Logger } from '@writ/telemetry';
import { Cors } from './cors.ts';
import { toGrpcStatus } from './errors.ts';
import type { WebHook, WebRequest, WebResponse } from './web.ts';

interface Parts {
  readonly handlers: ReadonlyMap<string, UniversalHandler>;
  readonly allowedOrigins: readonly string[];
  readonly web: WebHook | undefined;
  readonly log: Logger;
}

/** Returns the HTTP request handler of the edge: CORS preflights, RPCs, then the web hook. */
export function edgeRequests(parts: Parts): (request: WebRequest, response: WebResponse) => void {
  const { handlers, web, log } = parts;
  const cors = new Cors(parts.allowedOrigins);
  return (request, response) => {
    if (cors.handle(request, response)) return;
    const [path = ''] = (request.url ?? '').split('?', 1);
    const handler = handlers.get(path);
    if (handler !== undefined) void handleRpc(handler, request, response, log);
    else if (isGrpc(request)) sendUnimplemented(path, response);
    else if (web?.(request, response) !== true) sendNotFound(path, response);
  };
}

async function handleRpc(
  handler: UniversalHandler,
  request: WebRequest,
  response: WebResponse,
  log: Logger,
): Promise<void> {
  try {
    const universal = universalRequestFromNodeRequest(request, response, undefined, undefined);
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
