import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { systemClock } from '@writ/kernel';
import { localSlotShare } from '@writ/store';
import { createTelemetry } from '@writ/telemetry';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
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

describe('a watched MCP server (TG-6)', () => {
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
