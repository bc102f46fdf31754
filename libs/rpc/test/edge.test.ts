import { once } from 'node:events';
import { Agent, request as httpRequest, type IncomingMessage } from 'node:http';
import { connect, type Socket } from 'node:net';
import { createClient } from '@connectrpc/connect';
import { createConnectTransport, createGrpcWebTransport } from '@connectrpc/connect-node';
import { RunService } from '@writ/contracts/writ/run/v1/run_service_pb';
import { describe, expect, it } from 'vitest';
import type { EdgeOptions } from '../src/edge/index.ts';
import { KEY, START, type Started, start } from './fixture.ts';

const HEADERS = { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' };

const edge = (options: Partial<EdgeOptions> = {}): Promise<Started> =>
  start(
    'edge',
    {
      startRun: async ({ agent, goal }) => ({ run: { runId: 'run-1', agentName: agent, goal } }),
      async *watchRun({ afterSequence }) {
        yield { event: { sequence: afterSequence + 1n } };
        yield { event: { sequence: afterSequence + 2n } };
      },
    },
    options,
  );

async function post(address: string, method: string, body: unknown, headers = HEADERS) {
  const response = await fetch(`http://${address}/writ.run.v1.RunService/${method}`, {
    method: 'POST',
    headers,
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });
  const text = await response.text();
  return { status: response.status, json: text === '' ? undefined : JSON.parse(text) };
}

describe('JSON over HTTP/1.1', () => {
  it('accepts both spellings of a field and responds in camelCase (SYS-2)', async () => {
    const { address } = await edge();
    for (const body of [START, { request_id: 'req-1', agent: 'refund-desk', goal: 'Refund it.' }]) {
      const { status, json } = await post(address, 'StartRun', body);
      expect(status).toBe(200);
      expect(json.run).toMatchObject({ runId: 'run-1', goal: 'Refund it.' });
    }
  });

  it('is rejected with one sentence and ErrorInfo when a field has the wrong type (SYS-3)', async () => {
    const { address } = await edge();
    const { status, json } = await post(address, 'StartRun', { ...START, goal: 5 });
    expect(status).toBe(400);
    expect(json).toMatchObject({
      code: 'invalid_argument',
      message: 'goal: expected string, got 5',
      details: [
        { type: 'google.rpc.ErrorInfo', debug: { reason: 'MALFORMED_MESSAGE', domain: 'writ' } },
        { type: 'google.rpc.BadRequest' },
      ],
    });
    expect(json.details[0].debug.metadata.field).toBe('goal');
  });

  it('is rejected with a short answer when a malformed value is long (BD-1)', async () => {
    const { address } = await edge();
    const long = 'x'.repeat(1_000_000);
    const { status, json } = await post(address, 'StartRun', {
      ...START,
      runBudget: { maxTokens: long },
    });
    expect(status).toBe(400);
    expect(json.details).toMatchObject([
      { debug: { reason: 'MALFORMED_MESSAGE' } },
      { debug: { fieldViolations: [{ field: 'max_tokens' }] } },
    ]);
    expect(JSON.stringify(json).length).toBeLessThan(20_000);
  });

  it('is rejected when a field is misspelled, because an ignored budget would be unlimited (SYS-4)', async () => {
    const { address } = await edge();
    const { status, json } = await post(address, 'StartRun', { ...START, run_bugdet: {} });
    expect(status).toBe(400);
    expect(json.message).toContain('"run_bugdet"');
    expect(json.details[0].debug.reason).toBe('MALFORMED_MESSAGE');
  });

  it('is rejected when it is not valid JSON, without details for callers without a key (SYS-3)', async () => {
    const { address, lines } = await edge();
    expect((await post(address, 'StartRun', '{"goal":')).status).toBe(400);
    const { authorization: _none, ...anonymous } = HEADERS;
    const refused = await post(address, 'StartRun', '{"goal":', anonymous as typeof HEADERS);
    expect(refused).toMatchObject({ status: 401, json: { code: 'unauthenticated' } });
    expect(lines()).toMatchObject([{ reason: 'MALFORMED_MESSAGE' }, { reason: 'TOKEN_MISSING' }]);
  });

  it('is rejected with RESOURCE_EXHAUSTED when it is too large (SYS-3)', async () => {
    const { address } = await edge({ limits: { maxMessageBytes: 1000 } });
    const { status, json } = await post(address, 'StartRun', { ...START, goal: 'x'.repeat(2000) });
    expect(status).toBe(429);
    expect(json).toMatchObject({
      code: 'resource_exhausted',
      details: [{ debug: { reason: 'MESSAGE_TOO_LARGE' } }],
    });
  });

  it('streams in envelopes (SYS-2)', async () => {
    const { address } = await edge();
    const body = Buffer.from(JSON.stringify({ run_id: 'run-1', after_sequence: '40' }));
    const head = Buffer.alloc(5);
    head.writeUInt32BE(body.length, 1);
    const response = await fetch(`http://${address}/writ.run.v1.RunService/WatchRun`, {
      method: 'POST',
      headers: { ...HEADERS, 'content-type': 'application/connect+json' },
      body: Buffer.concat([head, body]),
    });
    const text = await response.text();
    expect(text).toContain('{"event":{"sequence":"41"}}');
    expect(text).toContain('{"event":{"sequence":"42"}}');
  });
});

describe('one port', () => {
  it('serves every Connect protocol over both HTTP versions (SYS-2)', async () => {
    const { address } = await edge();
    const baseUrl = `http://${address}`;
    const transports = [
      createConnectTransport({ baseUrl, httpVersion: '1.1' }),
      createConnectTransport({ baseUrl, httpVersion: '2' }),
      createGrpcWebTransport({ baseUrl, httpVersion: '1.1' }),
      createGrpcWebTransport({ baseUrl, httpVersion: '2' }),
    ];
    const headers = { authorization: HEADERS.authorization };
    for (const transport of transports) {
      const client = createClient(RunService, transport);
      expect((await client.startRun(START, { headers })).run?.runId).toBe('run-1');
      const events = await Array.fromAsync(client.watchRun({ runId: 'run-1' }, { headers }));
      expect(events.map(({ event }) => event?.sequence)).toEqual([1n, 2n]);
    }
  });

  it('detects the HTTP version from fragmented first bytes (SYS-2)', async () => {
    const { server } = await edge();
    const dial = async (...pieces: string[]): Promise<string> => {
      const socket: Socket = connect(server.port, '127.0.0.1');
      const answered = new Promise<string>((resolve) =>
        socket.once('data', (data) => resolve(data.toString('latin1'))),
      );
      for (const piece of pieces) {
        await new Promise((resolve) => socket.write(piece, 'latin1', resolve));
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
      const answer = await answered;
      socket.destroy();
      return answer;
    };
    // An HTTP/2 server's first frame is SETTINGS, type 4 on stream 0.
    const preface = 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0';
    expect((await dial(preface)).charCodeAt(3)).toBe(4);
    expect((await dial('P', 'R', preface.slice(2))).charCodeAt(3)).toBe(4);
    const post = 'POST /x HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n';
    expect(await dial(post)).toMatch(/^HTTP\/1\.1 404/);
    expect(await dial('P', post.slice(1))).toMatch(/^HTTP\/1\.1 404/);
    const get = 'GET /x HTTP/1.1\r\nhost: x\r\n\r\n';
    expect(await dial('G', 'ET', get.slice(3))).toMatch(/^HTTP\/1\.1 404/);
    expect(await dial('PR', 'X\r\n\r\n')).toMatch(/^HTTP\/1\.1 400/);
  });

  it('uses the idle timeout of HTTP/2 for HTTP/1.1, so that the client closes first (SYS-2)', async () => {
    const { address } = await edge();
    const { headers } = await fetch(`http://${address}/nothing`);
    // With Node's default of five seconds, the server would reset requests of clients with the same idle timeout.
    expect(headers.get('keep-alive')).toBe('timeout=300');
    const brief = await edge({ limits: { connectionIdleMs: 1_000 } });
    const agent = new Agent({ keepAlive: true });
    const request = httpRequest(`http://${brief.address}/nothing`, { agent }).end();
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    expect(response.headers['keep-alive']).toBe('timeout=1');
    response.resume();
    await once(response.socket, 'close');
  });

  it('passes other requests to the web hook and responds 404 to the rest (SYS-2)', async () => {
    const { address } = await edge({
      web: (request, response) => {
        if (request.url !== '/') return false;
        response.end('console');
        return true;
      },
    });
    expect(await (await fetch(`http://${address}/`)).text()).toBe('console');
    const unknown = await fetch(`http://${address}/nothing?x=1`);
    expect(unknown.status).toBe(404);
    expect(await unknown.json()).toMatchObject({ message: 'Not found: /nothing.' });
    expect((await fetch(`http://${address}/writ.run.v1.RunService/StartRun`)).status).toBe(405);
  });
});

describe('a script from another origin', () => {
  const CONSOLE = 'https://console.example';

  /** Sends the headers of a browser, which fetch does not allow. */
  async function send(port: number, method: string, headers: Record<string, string>) {
    return new Promise<{ status: number | undefined; headers: Record<string, unknown> }>(
      (resolve, reject) => {
        const path = '/writ.run.v1.RunService/StartRun';
        const request = httpRequest({ port, method, path, headers }, (response) => {
          response.resume();
          resolve({ status: response.statusCode, headers: response.headers });
        });
        request.on('error', reject);
        request.end(method === 'POST' ? JSON.stringify(START) : undefined);
      },
    );
  }

  it('is allowed when its origin is listed', async () => {
    const { server } = await edge({ allowedOrigins: [CONSOLE] });
    const preflight = await send(server.port, 'OPTIONS', {
      origin: CONSOLE,
      'access-control-request-method': 'POST',
    });
    expect(preflight.status).toBe(204);
    expect(preflight.headers).toMatchObject({
      'access-control-allow-origin': CONSOLE,
      'access-control-allow-methods': expect.stringContaining('POST'),
      'access-control-allow-headers': expect.stringContaining('authorization'),
    });
    const call = await send(server.port, 'POST', { ...HEADERS, origin: CONSOLE });
    expect(call.status).toBe(200);
    expect(call.headers['access-control-allow-origin']).toBe(CONSOLE);
  });

  it('is rejected when its origin is not listed or when no origin is listed', async () => {
    for (const allowedOrigins of [[], [CONSOLE]]) {
      const { server } = await edge({ allowedOrigins });
      const origin = 'https://evil.example';
      const headers = { origin, 'access-control-request-method': 'POST' };
      const preflight = await send(server.port, 'OPTIONS', headers);
      expect(preflight.status).toBe(403);
      expect(preflight.headers).not.toHaveProperty('access-control-allow-origin');
    }
  });
});
