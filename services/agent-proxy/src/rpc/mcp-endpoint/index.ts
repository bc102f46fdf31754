import { toNodeHandler } from '@modelcontextprotocol/node';
import { createMcpHandler } from '@modelcontextprotocol/server';
import { InvalidRequestError, isJsonObject, parseJsonStrict } from '@writ/kernel';
import type { WebHook, WebRequest, WebResponse } from '@writ/rpc/edge';
import { authorize } from '../../app/access/authorize.ts';
import type { ProxyContext } from '../../context.ts';
import { mcpErrorOf } from '../../wire/mcp-error.ts';
import { assertHost } from '../assert-host.ts';
import { bodyOf, sendJson } from '../json-http.ts';
import { serveUntilDisconnect } from '../serve-until-disconnect.ts';
import { Exchange } from './exchange.ts';
import { createServer } from './server.ts';

const PATH = '/mcp';
const METADATA = '/.well-known/oauth-protected-resource';
/** Maximum JSON nesting depth of a request. The gateway checks arguments against a separate limit. */
const MAX_DEPTH = 64;

/** The MCP endpoint: serves the tools of an external agent to unmodified clients of both MCP generations (AP-3). */
export function mcpEndpoint(context: ProxyContext): WebHook {
  const { log } = context.telemetry;
  const serve = serveMcp(context);
  const scheme = context.config.endpointTls === undefined ? 'http' : 'https';
  return (request, response) => {
    const [path = ''] = (request.url ?? '').split('?', 1);
    const isMetadata = path === METADATA || path === `${METADATA}${PATH}`;
    if (path !== PATH && !isMetadata) return false;
    const host = request.headers.host ?? String(request.headers[':authority'] ?? '');
    const origin = `${scheme}://${host}`;
    const work = async (): Promise<void> => {
      assertHost(request, context.config.hosts);
      if (isMetadata) sendJson(response, metadataOf(origin));
      else await serve(request, response);
    };
    work().catch((error: unknown) => {
      const answer = mcpErrorOf(error, `${origin}${METADATA}${PATH}`);
      if (answer.status >= 500) log.warn({ err: error }, 'request of an MCP client failed');
      if (response.headersSent || response.destroyed) response.end();
      else sendJson(response, answer.body, answer.headers, answer.status);
    });
    return true;
  };
}

/**
 * Returns the protected resource metadata (RFC 9728). It names no authorization server, because tokens are issued by
 * IssueRunToken.
 */
function metadataOf(origin: string): object {
  return {
    resource: `${origin}${PATH}`,
    resource_name: 'Writ agent-proxy',
    bearer_methods_supported: ['header'],
  };
}

function serveMcp(context: ProxyContext) {
  const { log } = context.telemetry;
  const handler = createMcpHandler(
    ({ era, authInfo }) => createServer(context, Exchange.of(authInfo), era),
    { onerror: (error) => log.debug({ err: error }, 'MCP request rejected') },
  );
  const handle = toNodeHandler(handler);
  return async (request: WebRequest, response: WebResponse): Promise<void> => {
    const authorized = await authorize(context, request);
    await serveUntilDisconnect(context, authorized, response, async (open) => {
      const exchange = new Exchange(authorized.key, open);
      try {
        const body = request.method === 'POST' ? await readMessage(request) : undefined;
        const { method = '', url = '' } = request;
        const authorizedRequest = Object.assign(request, { method, url, auth: exchange.authInfo });
        await handle(authorizedRequest, response, body);
        await exchange.sent(context, response);
      } finally {
        exchange.close();
      }
    });
  };
}

/**
 * Parses one message strictly before the SDK parses it, because the SDK would round large numbers and the rounded
 * number would be signed.
 * @throws InvalidRequestError BATCH_NOT_SUPPORTED; what parseJsonStrict throws
 */
async function readMessage(request: WebRequest): Promise<unknown> {
  const body = await bodyOf(request)();
  const limits = { field: 'body', maxBytes: body.byteLength, maxDepth: MAX_DEPTH };
  const message = parseJsonStrict(body, limits);
  if (isJsonObject(message)) return message;
  throw new InvalidRequestError(
    'BATCH_NOT_SUPPORTED',
    'The body must be one JSON-RPC message; batches are not supported.',
    { field: 'body' },
  );
}
