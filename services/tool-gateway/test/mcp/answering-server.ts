import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import { onTestFinished } from 'vitest';

/** A request that the server received. */
export interface Received {
  /** The method, or the name of the called tool. */
  readonly name: string;
  readonly response: ServerResponse;
  /** Sends the result of the request. */
  reply(): void;
}

interface Request {
  /** Undefined for a notification. */
  readonly id?: number;
  readonly method: string;
  readonly params?: { readonly protocolVersion?: string; readonly name?: string };
}

/**
 * Starts an MCP server over streamable HTTP that returns the text `done` for every tool call; it is closed after the
 * test.
 * @param on receives each request first and returns true when it answers the request itself, immediately or later
 * @param options `tools` returns the names of the tools at each listing, default none; `stream` answers a request for
 *   the notification stream, default with status 405; `notified` answers a notification, default with status 202
 */
export async function serveAnswers(
  on: (received: Received) => boolean,
  {
    tools = () => [],
    stream = (response) => response.writeHead(405).end(),
    notified = (response) => response.writeHead(202).end(),
  }: {
    readonly tools?: () => readonly string[];
    readonly stream?: (response: ServerResponse) => unknown;
    readonly notified?: (response: ServerResponse) => unknown;
  } = {},
) {
  const names: string[] = [];
  const server = createServer((request, response) => {
    void answer(request, response).catch(() => response.destroy());
  });
  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (request.method === 'GET') return void stream(response);
    if (request.method !== 'POST') return void response.writeHead(405).end();
    const { id, method, params } = (await json(request)) as Request;
    if (id === undefined) return void notified(response);
    const name = method === 'tools/call' ? (params?.name ?? '') : method;
    names.push(name);
    const reply = () => {
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end(
        JSON.stringify({ jsonrpc: '2.0', id, result: resultOf(method, params, tools()) }),
      );
    };
    if (!on({ name, response, reply })) reply();
  }
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/mcp`,
    names,
    /** Refuses new TCP connections; requests in flight can still be answered. */
    stopListening: () => void server.close(),
  };
}

function resultOf(method: string, params: Request['params'], tools: readonly string[]): object {
  if (method === 'tools/list') {
    return { tools: tools.map((name) => ({ name, inputSchema: { type: 'object' } })) };
  }
  if (method !== 'initialize') return { content: [{ type: 'text', text: 'done' }] };
  return {
    protocolVersion: params?.protocolVersion,
    capabilities: { tools: {} },
    serverInfo: { name: 'answering', version: '1' },
  };
}
