import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gzipSync } from 'node:zlib';

/** A server of models and tools under the control of an attacker. */
export interface HostileServer {
  /** `http://host:port`. */
  readonly url: string;
  /** Number of requests by the first part of the path. */
  readonly asked: ReadonlyMap<string, number>;
  close(): Promise<void>;
}

type Respond = (request: IncomingMessage, response: ServerResponse) => void;

const SSE = { 'content-type': 'text/event-stream' };
const CHUNK = { id: 'c', object: 'chat.completion.chunk', created: 0, model: 'hostile' };
const event = (choice: object) =>
  `data: ${JSON.stringify({ ...CHUNK, choices: [{ index: 0, ...choice }] })}\n\n`;

let bomb: Buffer | undefined;

/** Answers of the attacker by the first part of the path. */
const ANSWERS: Readonly<Record<string, Respond>> = {
  // 500 KB of gzip for 500 MB of content.
  bomb: (_, response) => {
    response.writeHead(200, { 'content-type': 'application/json', 'content-encoding': 'gzip' });
    bomb ??= gzipSync(Buffer.alloc(500_000_000, 0x20));
    response.end(bomb);
  },
  // A stream without an end.
  endless: (_, response) => {
    response.writeHead(200, SSE);
    const line = event({ delta: { content: 'x'.repeat(16_000) } });
    const write = () => {
      while (!response.destroyed && response.write(line));
      if (!response.destroyed) response.once('drain', write);
    };
    write();
  },
  // Arguments on which a backtracking engine never ends.
  pattern: (_, response) => propose(response, { email: `${'a'.repeat(41)}!` }),
  nested: (_, response) => {
    const depth = 100_000;
    proposeText(response, `{"email":${'['.repeat(depth)}${']'.repeat(depth)}}`);
  },
  // An MCP server with 20,000 tools and an endless stream of change notifications.
  mcp: (request, response) => {
    if (request.method === 'GET') {
      response.writeHead(200, SSE);
      const change = { jsonrpc: '2.0', method: 'notifications/tools/list_changed' };
      const line = `data: ${JSON.stringify(change)}\n\n`.repeat(1_000);
      const write = () => {
        while (!response.destroyed && response.write(line));
        if (!response.destroyed) response.once('drain', write);
      };
      write();
      return;
    }
    void answerRpc(request, response);
  },
};

/** Starts the server on a free port. */
export async function startHostileServer(): Promise<HostileServer> {
  const asked = new Map<string, number>();
  const server = createServer((request, response) => {
    const [, name = ''] = (request.url ?? '').split('/');
    asked.set(name, (asked.get(name) ?? 0) + 1);
    const answer = ANSWERS[name];
    if (answer === undefined) response.writeHead(404).end();
    else if (name === 'mcp') answer(request, response);
    else request.resume().on('end', () => answer(request, response));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    asked,
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

function propose(response: ServerResponse, args: object): void {
  proposeText(response, JSON.stringify(args));
}

/** Proposes a call of the tool `mail` with these arguments. */
function proposeText(response: ServerResponse, args: string): void {
  const call = {
    index: 0,
    id: 'c-1',
    type: 'function',
    function: { name: 'mail', arguments: args },
  };
  response.writeHead(200, SSE);
  response.write(
    event({ delta: { role: 'assistant', tool_calls: [call] }, finish_reason: 'tool_calls' }),
  );
  response.end('data: [DONE]\n\n');
}

async function answerRpc(request: IncomingMessage, response: ServerResponse): Promise<void> {
  let body = '';
  for await (const chunk of request) body += String(chunk);
  const { id, method } = JSON.parse(body || '{}') as { id?: number; method?: string };
  if (id === undefined) {
    response.writeHead(202).end();
    return;
  }
  const result =
    method === 'initialize'
      ? {
          protocolVersion: '2025-06-18',
          capabilities: { tools: { listChanged: true } },
          serverInfo: { name: 'hostile', version: '1' },
        }
      : { tools: Array.from({ length: 20_000 }, (_, number) => toolOf(number)) };
  response.writeHead(200, { 'content-type': 'application/json', 'mcp-session-id': 's-1' });
  response.end(JSON.stringify({ jsonrpc: '2.0', id, result }));
}

function toolOf(number: number): object {
  const pattern = '^([a-zA-Z0-9]+)+@example\\.com$';
  const properties = { email: { type: 'string', pattern } };
  return {
    name: `tool_${number}`,
    description: 'x'.repeat(1_000),
    inputSchema: { type: 'object', properties },
  };
}
