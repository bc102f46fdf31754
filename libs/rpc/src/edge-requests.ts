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

/** Answers every HTTP request of the edge: preflights, RPCs, and what the web hook knows. */
export function edgeRequests(parts: Parts): (request: WebRequest, response: WebResponse) => void {
  const { handlers, web, log } = parts;
  const cors = new Cors(parts.allowedOrigins);
  return (request, response) => {
    if (cors.answer(request, response)) return;
    const [path = ''] = (request.url ?? '').split('?', 1);
    const handler = handlers.get(path);
    if (handler !== undefined) void answerRpc(handler, request, response, log);
    else if (isGrpc(request)) answerUnknownRpc(path, response);
    else if (web?.(request, response) !== true) answerUnknown(path, response);
  };
}

async function answerRpc(
  handler: UniversalHandler,
  request: WebRequest,
  response: WebResponse,
  log: Logger,
): Promise<void> {
  try {
    const asked = universalRequestFromNodeRequest(request, response, undefined, undefined);
    const { status, header, body, trailer } = await handler(asked);
    const answer: UniversalServerResponse = {
      status,
      ...(header === undefined ? {} : { header }),
      ...(body === undefined ? {} : { body }),
      // Asked for at the end, when it is filled.
      get trailer() {
        return trailer === undefined ? new Headers() : withPlainMessage(trailer);
      },
    };
    await universalResponseToNodeResponse(answer, response);
  } catch (error) {
    // The call itself has been answered or cancelled; this is about writing to a lost connection.
    const problem = error instanceof Error ? error.name : typeof error;
    log.debug({ rpc: handler.requestPath.slice(1), problem }, 'An answer could not be written.');
    if (!response.headersSent) response.writeHead(400);
    response.end();
  }
}

/** gRPC-Web is not meant: its clients understand a plain 404. */
function isGrpc({ headers }: WebRequest): boolean {
  return /^application\/grpc(\+|;|$)/.test(headers['content-type'] ?? '');
}

/**
 * Connect escapes more of the sentence than gRPC asks for, and grpc-js's clients do not undo it:
 * they would show `goal%3A must be …`.
 */
function withPlainMessage(trailer: Headers): Headers {
  const message = trailer.get('grpc-message');
  if (message !== null) trailer.set('grpc-message', encodeURI(decodeURIComponent(message)));
  return trailer;
}

function answerUnknownRpc(path: string, response: WebResponse): void {
  const { code, details, metadata } = toGrpcStatus(
    new NotImplementedError('UNKNOWN_METHOD', `This server has no method ${path}.`),
  );
  response.writeHead(200, { 'content-type': 'application/grpc' });
  response.addTrailers({
    'grpc-status': String(code),
    'grpc-message': encodeURI(details),
    ...(metadata.toHttp2Headers() as Record<string, string>),
  });
  response.end();
}

function answerUnknown(path: string, response: WebResponse): void {
  response.writeHead(404, { 'content-type': 'application/json' });
  const message = `This server has nothing at ${path}.`;
  response.end(JSON.stringify({ code: 'unimplemented', message }));
}
