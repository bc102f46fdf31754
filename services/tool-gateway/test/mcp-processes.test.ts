import { CallStatus } from '@writ/contracts/writ/identity/v1/claims_pb';
import { ResultKind, SideEffect, type ToolDefinition } from '@writ/contracts/writ/tool/v1/tool_pb';
import { sha256Hex } from '@writ/kernel';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { type Fixture, startFixture } from './gateway-fixture.ts';
import { EVERYTHING, type HttpServer, serveEverything } from './mcp/everything.ts';

let fixture: Fixture;
let server: HttpServer;
let calls = 0;
let definitions: ReadonlyMap<string, ToolDefinition>;

beforeAll(async () => {
  server = await serveEverything();
  const loose = { max_calls_per_agent: 1_000, max_repeats: 1_000 };
  const tools = (['near', 'far'] as const).flatMap((source) => [
    { name: `${source}__echo`, source, side_effect: 'read_only', risk: 0.1, ...loose },
    { name: `${source}__get-env`, source, ...loose },
    { name: `${source}__get-sum`, source, max_output_bytes: 20 },
    { name: `${source}__trigger-long-running-operation`, source, timeout: '300ms', ...loose },
  ]);
  const text = JSON.stringify({
    tools: [...tools, { name: 'down__look', source: 'down' }],
    sources: {
      near: {
        kind: 'mcp',
        command: process.execPath,
        args: [EVERYTHING],
        env: { GIVEN: `$\{GIVEN}` },
      },
      far: { kind: 'mcp', url: server.url },
      down: { kind: 'mcp', url: 'http://127.0.0.1:1/mcp' },
    },
  });
  vi.stubEnv('GATEWAY_SECRET', 'not for tools');
  fixture = await startFixture({
    config: { tools: { text, file: import.meta.filename }, variables: { GIVEN: 'for tools' } },
  });
  const listed = await fixture.asSupervisor.listTools({});
  definitions = new Map(listed.tools.map((tool) => [tool.name, tool]));
});

afterAll(async () => {
  await fixture[Symbol.asyncDispose]();
  await server.stop();
});

function call(tool: string, args: object = {}) {
  calls += 1;
  const definitionDigest = definitions.get(tool)?.definitionDigest ?? sha256Hex(tool);
  return fixture.call({ tool, args, callId: `op-${calls}`, writ: { definitionDigest } });
}

describe.each(['near', 'far'])('the MCP server "everything", %s (TG-6)', (source) => {
  it('has its tools listed with the prefix of the source, by default as destructive with risk 1', () => {
    expect(definitions.get(`${source}__get-tiny-image`)).toMatchObject({
      sideEffect: SideEffect.DESTRUCTIVE,
      risk: 1,
    });
    expect(definitions.get(`${source}__echo`)).toMatchObject({
      sideEffect: SideEffect.READ_ONLY,
      risk: 0.1,
      description: expect.stringMatching(/\S/),
    });
  });

  it('runs its tools and returns text, structured and other content', async () => {
    expect(await call(`${source}__echo`, { message: 'hello' })).toMatchObject({
      status: CallStatus.OK,
      result: { kind: ResultKind.TEXT, content: 'Echo: hello' },
    });
    const weather = await call(`${source}__get-structured-content`, { location: 'Chicago' });
    expect(JSON.parse(weather.result?.content ?? '')).toHaveProperty('temperature');
    const image = await call(`${source}__get-tiny-image`);
    expect(JSON.parse(image.result?.content ?? '')).toMatchObject({
      content: expect.arrayContaining([expect.objectContaining({ type: 'image' })]),
    });
  });

  it('receives no arguments that its schema does not allow (TG-3)', async () => {
    expect(await call(`${source}__echo`, { message: 1 })).toMatchObject({
      status: CallStatus.REFUSED,
      stopReason: `tool_bad_args:${source}__echo`,
    });
  });

  it('receives a cancellation at the timeout and serves the next call', async () => {
    const slow = `${source}__trigger-long-running-operation`;
    expect(await call(slow, { duration: 60, steps: 1 })).toMatchObject({
      status: CallStatus.UNKNOWN,
      message: expect.stringContaining('within its timeout of 300 ms'),
    });
    expect((await call(`${source}__echo`, { message: 'again' })).status).toBe(CallStatus.OK);
  });

  it('truncates output at the limit of the tool', async () => {
    const { result } = await call(`${source}__get-sum`, { a: 2, b: 3 });
    expect(result).toMatchObject({ truncated: true, kind: ResultKind.TEXT });
    expect(result?.content).toHaveLength(20);
    expect(result?.fullSizeBytes).toBeGreaterThan(20n);
  });
});

describe('an MCP server over stdio', () => {
  it('sees only the configured environment', async () => {
    const { result } = await call('near__get-env');
    expect(JSON.parse(result?.content ?? '')).toMatchObject({ GIVEN: 'for tools' });
    expect(result?.content).not.toContain('GATEWAY_SECRET');
  });
});

describe('an unreachable MCP server', () => {
  it('offers no tools and does not fail the start (SYS-4)', async () => {
    expect(definitions.has('down__look')).toBe(false);
    expect((await call('down__look')).stopReason).toBe('tool_missing:down__look');
  });

  it('fails only its own calls, and is used again after it recovers', async () => {
    const port = Number(new URL(server.url).port);
    await server.stop();
    expect(await call('far__echo', { message: 'hello?' })).toMatchObject({
      status: CallStatus.ERROR,
      stopReason: 'tool_error:far__echo',
    });
    expect((await call('near__echo', { message: 'still here' })).status).toBe(CallStatus.OK);
    server = await serveEverything(port);
    await vi.waitUntil(
      async () => (await call('far__echo', { message: 'back?' })).status === CallStatus.OK,
      { timeout: 30_000, interval: 50 },
    );
  });
});
