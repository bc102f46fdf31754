import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import { createTelemetry } from '@writ/telemetry';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { toolInvocation } from '../../../test/tool-invocation.ts';
import type { OfferedTools, ToolSource } from '../source.ts';
import { MCP_LIMITS } from './mcp-limits.ts';
import { openMcpSource } from './mcp-source.ts';

/** The behavior of the test server: its tools, and what it writes to its notification stream. */
interface Hostility {
  readonly tools?: readonly object[];
  /** Writes to the notification stream once it is open. */
  readonly notify?: (stream: ServerResponse) => Promise<void>;
}

const TOOL = { name: 'look', inputSchema: { type: 'object' } };
const CHANGED = 'data: {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}\n\n';

/** Starts an MCP server over streamable HTTP that offers `tools` and calls `notify` with its notification stream. */
async function serve({ tools = [TOOL], notify }: Hostility) {
  const received = { lists: 0, connects: 0 };
  const server = createServer((request, response) => {
    if (request.method === 'GET') {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      void notify?.(response);
      return;
    }
    void answer(request, response).catch(() => response.destroy());
  });
  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { id, method, params } = (await json(request)) as Record<
      string,
      { protocolVersion: string }
    >;
    if (id === undefined) return void response.writeHead(202).end();
    if (method === ('tools/list' as never)) received.lists += 1;
    if (method === ('initialize' as never)) received.connects += 1;
    const results: Record<string, object> = {
      initialize: {
        protocolVersion: params?.protocolVersion,
        capabilities: { tools: { listChanged: true } },
        serverInfo: { name: 'hostile', version: '1' },
      },
      'tools/list': { tools },
      'tools/call': { content: [{ type: 'text', text: 'seen' }] },
    };
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ jsonrpc: '2.0', id, result: results[String(method)] }));
  }
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}/mcp`, received };
}

function open(url: string) {
  const { log } = createTelemetry({ service: 'tool-gateway', logLevel: 'silent' });
  const error = vi.spyOn(log, 'error');
  const server = { transport: 'http', url, headers: {} } as const;
  const source = openMcpSource({ name: 'odd', server, log });
  onTestFinished(() => source.close());
  const offers: OfferedTools[] = [];
  source.watch?.((offered) => void offers.push(offered));
  return { source, offers, error };
}

/** The last logged error, as `message: problem`. */
function logged({ mock }: ReturnType<typeof open>['error']): string {
  const [fields, message] = mock.lastCall ?? [];
  return `${message}: ${(fields as { readonly problem?: string } | undefined)?.problem}`;
}

const call = (source: ToolSource) => source.invoke(toolInvocation('odd__look'));

const UNREACHABLE = { kind: 'failed', message: 'The server of odd__look is unreachable.' };

describe('an MCP server with limits on what it sends (BD-1)', () => {
  it('is disabled when it offers too many tools', async () => {
    const tools = Array.from({ length: 20_000 }, (_, n) => ({ ...TOOL, name: `t${n}` }));
    const { source, offers, error } = open((await serve({ tools })).url);
    const limit = `it offers 20000 tools; the limit is ${MCP_LIMITS.tools}`;
    await expect.poll(() => logged(error)).toBe(`MCP server disabled: ${limit}`);
    expect(offers).toEqual([{}]);
    expect(await call(source)).toEqual(UNREACHABLE);
  });

  it('is disabled when its tool descriptions exceed the total size limit', async () => {
    const tools = Array.from({ length: 30 }, (_, n) => ({
      ...TOOL,
      name: `t${n}`,
      description: 'x'.repeat(50_000),
    }));
    const { error } = open((await serve({ tools })).url);
    await expect.poll(() => logged(error)).toMatch(/describes its tools in \d+ bytes/);
  });

  it('is disabled when it sends an endless event on its notification stream', async () => {
    let sent = 0;
    const chunk = 'x'.repeat(65_536);
    const { url } = await serve({
      notify: async (stream) => {
        stream.write('data: ');
        while (!stream.destroyed) {
          sent += chunk.length;
          if (!stream.write(chunk)) await once(stream, 'drain');
        }
      },
    });
    const { source, offers, error } = open(url);
    await expect.poll(() => logged(error)).toContain('an event of more than 4194304 bytes');
    await expect.poll(() => offers.at(-1)).toEqual({});
    expect(await call(source)).toEqual(UNREACHABLE);
    // `sent` includes the bytes that are still in socket buffers.
    expect(sent).toBeLessThan(4 * MCP_LIMITS.messageBytes);
  });

  it('is disabled when it sends a flood of notifications, which are not parsed', async () => {
    const parse = vi.spyOn(JSON, 'parse');
    onTestFinished(() => parse.mockRestore());
    const notify = async (stream: ServerResponse) => void stream.write(CHANGED.repeat(20_000));
    const { error } = open((await serve({ notify })).url);
    await expect.poll(() => logged(error)).toContain('more than 500 events in 10 seconds');
    expect(error).toHaveBeenCalledOnce();
    const parsed = parse.mock.calls.filter(([text]) => text.includes('list_changed'));
    expect(parsed.length).toBeLessThanOrEqual(MCP_LIMITS.messages);
  });

  it('stays enabled when it sends a stream of small events, and is not listed after each event', async () => {
    const { promise: streamed, resolve } = Promise.withResolvers<void>();
    const { url, received } = await serve({
      notify: async (stream) => {
        for (let n = 0; n < 100; n += 1) {
          stream.write(`: ${'x'.repeat(65_536)}\n\n${CHANGED}`);
          await new Promise((done) => setImmediate(done));
        }
        resolve();
      },
    });
    const { source, offers, error } = open(url);
    await streamed;
    expect(await call(source)).toMatchObject({ kind: 'output' });
    await expect.poll(() => offers.at(-1)).toHaveProperty('odd__look');
    expect(error).not.toHaveBeenCalled();
    expect(received).toMatchObject({ connects: 1 });
    expect(received.lists).toBeLessThanOrEqual(2);
  });
});
