import type { UniversalHandler } from '@connectrpc/connect/protocol';
import {
  universalRequestFromNodeRequest,
  universalResponseToNodeResponse,
} from '@connectrpc/connect-node';
import type { Logger } from '@writ/telemetry';
import { Cors } from './cors.ts';
import { statusCode } from './status-code.ts';
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
    await universalResponseToNodeResponse(await handler(asked), response);
  } catch (error) {
    // The call itself has been answered or cancelled; this is about writing to a lost connection.
    const problem = error instanceof Error ? error.name : typeof error;
    log.debug({ rpc: handler.requestPath.slice(1), problem }, 'An answer could not be written.');
    if (!response.headersSent) response.writeHead(400);
    response.end();
  }
}

function isGrpc({ headers }: WebRequest): boolean {
  return headers['content-type']?.startsWith('application/grpc') === true;
}

function answerUnknownRpc(path: string, response: WebResponse): void {
  response.writeHead(200, {
    'content-type': 'application/grpc',
    'grpc-status': String(statusCode('unimplemented')),
    'grpc-message': encodeURI(`This server has no method ${path}.`.toWellFormed()),
  });
  response.end();
}

function answerUnknown(path: string, response: WebResponse): void {
  response.writeHead(404, { 'content-type': 'application/json' });
  const message = `This server has nothing at ${path}.`;
  response.end(JSON.stringify({ code: 'unimplemented', message }));
}
