import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { FreezeCause } from '@writ/contracts/writ/control/v1/freeze_pb';
import { CallStatus } from '@writ/contracts/writ/identity/v1/claims_pb';
import { HistoryRetention } from '@writ/contracts/writ/supervision/v1/supervision_pb';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Fixture, startFixture } from './gateway-fixture.ts';

let server: Server;
let page: RequestListener;
let address: string;
let fixture: Fixture;
let calls = 0;

beforeAll(async () => {
  server = createServer((request, response) => page(request, response));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  address = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  const tools = ['http_fetch', 'now', 'calculator', 'note'];
  const text = JSON.stringify({
    tools: tools.map((name) => ({
      name,
      source: 'own',
      max_calls_per_agent: 1_000,
      max_repeats: 1_000,
      ...(name === 'http_fetch' && { timeout: '300ms' }),
    })),
    sources: { own: { kind: 'builtin', allow_hosts: [`$\{PAGE}`] } },
  });
  fixture = await startFixture({
    config: { tools: { text, file: '/bank/tools.yaml' }, variables: { PAGE: address } },
  });
});

afterAll(async () => {
  await fixture[Symbol.asyncDispose]();
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

async function call(tool: string, args: object, runId = 'run_1') {
  calls += 1;
  const answer = await fixture.call({ tool, args, runId, callId: `op-${calls}` });
  const result = answer.result === undefined ? undefined : JSON.parse(answer.result.content);
  return { ...answer, result };
}

const get = (path = '/', more = {}) =>
  call('http_fetch', { url: `http://${address}${path}`, ...more });

describe('built-in tools (TG-6)', () => {
  it('define themselves, with overrides from tools.yaml', async () => {
    const { tools } = await fixture.asSupervisor.listTools({});
    expect(tools.map(({ name, timeout }) => [name, timeout?.nanos])).toEqual([
      ['calculator', 0],
      ['http_fetch', 300_000_000],
      ['note', 0],
      ['now', 0],
    ]);
  });

  it('calculator evaluates an expression or reports its error', async () => {
    expect(await call('calculator', { expression: '(2 + 3) * 4' })).toMatchObject({
      status: CallStatus.OK,
      result: { result: 20 },
    });
    expect(await call('calculator', { expression: '1 / 0' })).toMatchObject({
      status: CallStatus.ERROR,
      stopReason: 'tool_error:calculator',
      message: expect.stringContaining('divides by zero'),
    });
  });

  it('now returns the time in a time zone', async () => {
    const { result } = await call('now', { time_zone: 'Asia/Kolkata' });
    const { utc, unix_seconds, local } = result;
    expect(Date.parse(utc)).toBeGreaterThanOrEqual(unix_seconds * 1_000);
    expect(Date.parse(`${local}Z`) - unix_seconds * 1_000).toBe(5.5 * 3_600_000);
    expect(await call('now', { time_zone: 'Mars/Crater' })).toMatchObject({
      status: CallStatus.ERROR,
      message: 'time_zone must be an IANA name, such as Europe/Lisbon.',
    });
  });
});

describe('http_fetch', () => {
  it('returns JSON as JSON and other text types as text', async () => {
    page = (_, response) => response.setHeader('content-type', 'application/json').end('{"a":[1]}');
    expect((await get('/api?q=1')).result).toEqual({
      url: `http://${address}/api?q=1`,
      status: 200,
      content_type: 'application/json',
      truncated: false,
      json: { a: [1] },
    });
    page = (_, response) => {
      response.writeHead(404, { 'content-type': 'text/plain; charset=latin1' });
      response.end(Buffer.from('Größe', 'latin1'));
    };
    expect((await get()).result).toMatchObject({ status: 404, text: 'Größe' });
  });

  it('supports HEAD, and no method that writes (TG-3)', async () => {
    const methods: (string | undefined)[] = [];
    page = ({ method }, response) => {
      methods.push(method);
      response.end();
    };
    expect((await get('/', { method: 'HEAD' })).result).toMatchObject({ status: 200, text: '' });
    expect(await get('/', { method: 'POST' })).toMatchObject({
      stopReason: 'tool_bad_args:http_fetch',
    });
    expect(methods).toEqual(['HEAD']);
  });

  it('stays behind the egress guard (TG-9)', async () => {
    page = (_, response) => response.writeHead(302, { location: 'http://169.254.169.254/' }).end();
    for (const attempt of [get(), call('http_fetch', { url: 'http://[::1]/' })]) {
      expect(await attempt).toMatchObject({
        status: CallStatus.ERROR,
        stopReason: 'tool_error:http_fetch',
        message: expect.stringContaining('Tools may not connect to it'),
      });
    }
  });

  it('cuts an endless body and skips a binary body', async () => {
    page = (_, response) => {
      const more = () => {
        while (!response.destroyed && response.write('x'.repeat(65_536)));
      };
      response.setHeader('content-type', 'text/plain').on('drain', more);
      more();
    };
    calls += 1;
    const endless = await fixture.call({
      tool: 'http_fetch',
      args: { url: `http://${address}/` },
      callId: `op-${calls}`,
    });
    expect(endless.result).toMatchObject({ truncated: true });
    expect(endless.result?.fullSizeBytes).toBeGreaterThan(1_000_000n);
    page = (_, response) => response.setHeader('content-type', 'image/png').end('png');
    expect((await get()).result).toMatchObject({ content_type: 'image/png', truncated: false });
    page = (_, response) => response.setHeader('content-encoding', 'gzip').end('zip');
    expect((await get()).message).toContain('compressed body');
  });

  it('ends at its timeout and reports an aborted response', async () => {
    page = () => undefined;
    expect((await get()).message).toContain('within its timeout of 300 ms');
    page = (request) => request.socket.destroy();
    expect((await get()).message).toBe('The server is unreachable or aborted its response.');
  });
});

describe('note', () => {
  const write = (name: string, text: string, runId?: string) =>
    call('note', { action: 'write', name, text }, runId);
  const read = (name: string, runId?: string) => call('note', { action: 'read', name }, runId);

  it('keeps the texts of a run across a crash', async () => {
    await write('plan', 'first');
    await write('plan', 'Größe');
    await fixture.crash();
    expect((await read('plan')).result).toEqual({ name: 'plan', text: 'Größe' });
    expect((await call('note', { action: 'list' })).result).toEqual({
      notes: [{ name: 'plan', size_bytes: 7 }],
    });
    expect((await read('plan', 'run_2')).message).toBe('Note plan does not exist.');
  });

  it('names the exceeded limit or the missing argument', async () => {
    const text = 'x'.repeat(16_384);
    expect((await write('big', `${text}x`)).message).toContain('at most 16384 bytes');
    expect((await call('note', { action: 'write', name: 'a' })).message).toContain('text is');
    expect((await call('note', { action: 'read' })).message).toBe('name is required to read.');
    for (let n = 0; n < 16; n += 1) await write(`n${n}`, text, 'run_full');
    expect((await write('one', 'x', 'run_full')).message).toContain('at most 262144 bytes');
    expect((await write('n0', 'x', 'run_full')).status).toBe(CallStatus.OK);
  });

  it('is deleted at the end of a run that keeps nothing (SUP-4)', async () => {
    await write('secret', 'lost soon', 'run_ends');
    const scope = { kind: { case: 'run', value: { tenant: 'acme', runId: 'run_ends' } } } as const;
    await fixture.asSupervisor.freeze({
      order: {
        orderId: 'end_1',
        scope,
        cause: FreezeCause.END,
        reason: 'The run has ended.',
        orderedBy: 'supervisor',
        retention: HistoryRetention.RUN,
      },
    });
    const rows = await fixture.gateway.store.db
      .selectFrom('notes')
      .selectAll()
      .where('run_id', '=', 'run_ends')
      .execute();
    expect(rows).toEqual([]);
  });
});
