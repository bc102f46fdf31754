import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { json } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { systemClock } from '@writ/kernel';
import { localSlotShare } from '@writ/store';
import { createTelemetry } from '@writ/telemetry';
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { toolInvocation } from '../../test/tool-invocation.ts';
import { LiveTools } from './live-tools.ts';
import type { ToolAnswer } from './source.ts';

const SERVER = fileURLToPath(new URL('../../test/mcp/fragile-server.ts', import.meta.url));
const SHAPES = fileURLToPath(new URL('../../test/modules/shapes.ts', import.meta.url));
const telemetry = createTelemetry({ service: 'tool-gateway', logLevel: 'silent' });
const mcp = { kind: 'mcp', command: process.execPath, args: [SERVER] };
const shapes = { kind: 'local', module: SHAPES };
const shape = (name: string) => ({
  name,
  description: 'A shape.',
  input_schema: { type: 'object' },
  side_effect: 'read_only',
  risk: 0,
  source: 'shapes',
});

let dir: string;
let file: string;
let live: LiveTools;

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'writ-tools-'));
  file = join(dir, 'tools.yaml');
});

afterEach(async () => {
  await live.close();
  await rm(dir, { recursive: true, force: true });
});

const write = (document: object) => writeFile(file, JSON.stringify(document));

async function open(document: object): Promise<void> {
  await write(document);
  live = await LiveTools.open(file, {
    dataDir: dir,
    variables: {},
    clock: systemClock,
    telemetry,
    shareOf: (_, limit) => localSlotShare(limit),
    providerToken: async () => '',
  });
}

async function reload(document: object): Promise<void> {
  await write(document);
  await live.reload();
}

const names = () => Array.from(live.now.registry.tools.keys());

async function invoke(tool: string): Promise<ToolAnswer | undefined> {
  const [source = ''] = tool.split('__');
  return await live.now.find(source)?.invoke(toolInvocation(tool));
}

describe('reload of the tools file (TG-6)', () => {
  it('applies a valid file as a whole: a new version without the removed tools (TG-2)', async () => {
    await open({ tools: [shape('text')], sources: { shapes } });
    const { version } = live.now.registry;
    await reload({ tools: [shape('list')], sources: { shapes } });
    expect(names()).toEqual(['list']);
    expect(live.now.registry.version).not.toBe(version);
  });

  it('rejects an invalid file as a whole with file, line and column, and keeps the previous tools', async () => {
    const fetch = { name: 'http_fetch', source: 'own' };
    await open({ tools: [fetch], sources: { own: { kind: 'builtin' } } });
    const { registry } = live.now;
    const logged = vi.spyOn(telemetry.log, 'error');
    await writeFile(
      file,
      'tools:\n  - { name: http_fetch, source: own }\n  - { name: http_fetch, source: missing }\n',
    );
    await live.reload();
    await reload({ tools: [], sources: { bad: { kind: 'local', module: './nowhere.ts' } } });
    await rm(file);
    await live.reload();
    expect(live.now.registry).toBe(registry);
    expect(logged).toHaveBeenCalledTimes(3);
    const [problems] = logged.mock.calls.map(
      ([fields]) => (fields as { problems: string[] }).problems,
    );
    expect(problems?.join('\n')).toMatch(/tools\.yaml:\d+:\d+/);
  });

  it('rejects a file that declares a tool that an open module does not have', async () => {
    const sources = { shapes };
    await open({ tools: [shape('text')], sources });
    await reload({ tools: [shape('text'), shape('list')], sources });
    expect(names()).toEqual(['list', 'text']);
    await reload({ tools: [shape('text'), shape('unheard_of')], sources });
    expect(names()).toEqual(['list', 'text']);
  });

  it('opens, reopens and closes the changed sources and keeps the others', async () => {
    await open({ tools: [], sources: { one: mcp, two: mcp } });
    const first = await Promise.all([invoke('one__pid'), invoke('two__pid')]);
    const before = live.now;
    await reload({
      tools: [],
      sources: { one: { ...mcp, max_in_flight: 3 }, two: { ...mcp, env: { A: 'b' } }, three: mcp },
    });
    const then = await Promise.all([invoke('one__pid'), invoke('two__pid'), invoke('three__pid')]);
    expect(then[0]).toEqual(first[0]);
    expect(then[1]).toMatchObject({ kind: 'output' });
    expect(then[1]).not.toEqual(first[1]);
    expect(then[2]).toMatchObject({ kind: 'output' });
    await reload({ tools: [], sources: { one: { ...mcp, max_in_flight: 3 } } });
    expect(live.now.find('two')).toBeUndefined();
    expect(names().every((name) => name.startsWith('one__'))).toBe(true);
    await vi.waitFor(async () => {
      const source = before.find('two');
      expect((await source?.offer?.().catch(() => 'ended')) ?? 'removed').toBe('ended');
    });
  });
});

/**
 * Starts an MCP server over HTTP with one tool.
 * @param failures number of connection attempts that the server rejects first
 * @param list promise that the server awaits before it lists its tool
 */
async function serve({ failures = 0, list = Promise.resolve() }) {
  const seen = { connects: 0, lists: 0 };
  const server = createServer((request, response) => {
    void answer(request, response).catch(() => response.destroy());
  });
  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (request.method !== 'POST') return void response.writeHead(405).end();
    const { id, method, params } = (await json(request)) as {
      readonly id?: number;
      readonly method: string;
      readonly params?: { readonly protocolVersion?: string };
    };
    if (id === undefined) return void response.writeHead(202).end();
    if (method === 'initialize') seen.connects += 1;
    if (seen.connects <= failures) return void response.writeHead(503).end();
    if (method === 'tools/list') {
      seen.lists += 1;
      await list;
    }
    const result =
      method === 'initialize'
        ? {
            protocolVersion: params?.protocolVersion,
            capabilities: { tools: {} },
            serverInfo: { name: 'late', version: '1' },
          }
        : { tools: [{ name: 'look', inputSchema: { type: 'object' } }] };
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ jsonrpc: '2.0', id, result }));
  }
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return { source: { kind: 'mcp', url: `http://127.0.0.1:${port}/mcp` }, seen };
}

describe('a watched MCP server (TG-6)', () => {
  it('keeps its tools when it reconnects while the gateway still lists another source at startup', async () => {
    const { promise: list, resolve: answerList } = Promise.withResolvers<void>();
    const [first, second] = await Promise.all([serve({ failures: 1 }), serve({ list })]);
    const opening = open({ tools: [], sources: { first: first.source, second: second.source } });
    await vi.waitFor(() => expect(first.seen.lists).toBe(1));
    answerList();
    await opening;
    await vi.waitFor(() => expect(names()).toEqual(['first__look', 'second__look']));
  });

  it('is listed again after a change notification and after an automatic restart', async () => {
    await open({ tools: [], sources: { odd: mcp } });
    expect(names()).not.toContain('odd__trick');
    await invoke('odd__learn');
    await vi.waitFor(() => expect(names()).toContain('odd__trick'));
    await invoke('odd__die');
    // The restarted process does not have the tool; no call caused the restart.
    await vi.waitFor(() => expect(names()).not.toContain('odd__trick'));
    expect(names()).toContain('odd__pid');
  });
});
