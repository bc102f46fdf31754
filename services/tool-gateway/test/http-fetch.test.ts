import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { CallStatus } from '@writ/contracts/writ/identity/v1/claims_pb';
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
  const text = JSON.stringify({
    tools: [
      {
        name: 'http_fetch',
        source: 'own',
        timeout: '300ms',
        max_calls_per_agent: 1_000,
        max_repeats: 1_000,
      },
    ],
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

async function call(args: object) {
  calls += 1;
  const answer = await fixture.call({ tool: 'http_fetch', args, callId: `op-${calls}` });
  const result = answer.result === undefined ? undefined : JSON.parse(answer.result.content);
  return { ...answer, result };
}

const get = (path = '/', more = {}) => call({ url: `http://${address}${path}`, ...more });

describe('http_fetch', () => {
  it('gets its definition from the gateway, with overrides from tools.yaml (TG-6)', async () => {
    const { tools } = await fixture.asSupervisor.listTools({});
    expect(tools.map(({ name, timeout }) => [name, timeout?.nanos])).toEqual([
      ['http_fetch', 300_000_000],
    ]);
  });

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

  it('supports HEAD, but no method that writes (TG-3)', async () => {
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

  it('is subject to the egress guard (TG-9)', async () => {
    page = (_, response) => response.writeHead(302, { location: 'http://169.254.169.254/' }).end();
    for (const attempt of [get(), call({ url: 'http://[::1]/' })]) {
      expect(await attempt).toMatchObject({
        status: CallStatus.ERROR,
        stopReason: 'tool_error:http_fetch',
        message: expect.stringContaining('Tools may not connect to it'),
      });
    }
  });

  it('truncates an endless body and omits a binary body', async () => {
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
