import { once } from 'node:events';
import { connect as connectHttp2 } from 'node:http2';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { OverloadedError } from '@writ/kernel';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import type { WebHook } from '../src/edge/index.ts';
import { type Gate, reserved } from '../src/index.ts';
import { ALLOWED, drained, KEY, rejection, START, start, TRANSPORTS } from './fixture.ts';

describe.each(TRANSPORTS)('over %s', (transport) => {
  it('rejects a request over the size limit as RESOURCE_EXHAUSTED, with details (SYS-3)', async () => {
    const limits = { maxMessageBytes: 1000 };
    const { client } = await start(transport, { startRun: async () => ({}) }, { limits });
    const caller = client();
    const error = await rejection(caller.startRun({ ...START, goal: 'x'.repeat(1001) }, ALLOWED));
    expect(error).toBeInstanceOf(OverloadedError);
    expect(error).toMatchObject({ reason: 'MESSAGE_TOO_LARGE' });
    expect((error as Error).message).toContain('1000');
    await caller.startRun({ ...START, goal: 'x'.repeat(900) }, ALLOWED);
  });

  it('rejects a response over the size limit as RESOURCE_EXHAUSTED, unary or streaming (SYS-3)', async () => {
    const runId = 'x'.repeat(1001);
    const { client } = await start(
      transport,
      {
        startRun: async () => ({ run: { runId } }),
        async *runAgent() {
          yield { runId: 'short' };
          yield { runId };
        },
      },
      { limits: { maxMessageBytes: 1000 } },
    );
    const caller = client();
    const expected = { reason: 'MESSAGE_TOO_LARGE', message: expect.stringContaining('1000') };
    expect(await rejection(caller.startRun(START, ALLOWED))).toMatchObject(expected);
    const { got, error } = await drained(caller.runAgent({ start: START }, ALLOWED));
    expect(got).toHaveLength(1);
    expect(error).toMatchObject(expected);
  });

  it('rejects a call over the limit of calls in flight, and accepts later ones (SYS-3)', async () => {
    const begun = Promise.withResolvers<void>();
    const release = Promise.withResolvers<void>();
    const { client } = await start(
      transport,
      {
        startRun: async () => {
          begun.resolve();
          await release.promise;
          return {};
        },
      },
      { limits: { maxConcurrentCalls: 1 } },
    );
    const caller = client();
    const first = caller.startRun(START, ALLOWED);
    await begun.promise;
    expect(await rejection(caller.startRun(START, ALLOWED))).toMatchObject({
      kind: 'resource_exhausted',
      reason: 'TOO_MANY_CALLS',
      metadata: { limit: '1' },
    });
    release.resolve();
    await expect(first).resolves.toBeDefined();
    await expect(caller.startRun(START, ALLOWED)).resolves.toBeDefined();
  });

  it('keeps the connection usable when about 1,000 calls are cancelled at once (SUP-8)', async () => {
    let open = 0;
    const { client } = await start(
      transport,
      {
        startRun: async ({ requestId }, { signal }) => {
          if (requestId === 'last') return {};
          open += 1;
          await new Promise((resolve) => signal.addEventListener('abort', resolve));
          open -= 1;
          throw signal.reason;
        },
      },
      { limits: { maxConcurrentStreams: 3000 } },
    );
    const caller = client();
    const stop = new AbortController();
    const options = { ...ALLOWED, signal: stop.signal };
    // Node protects public ports from clients that reset more than 1,000 streams at once (BD-2).
    const cancelled = transport === 'edge' ? 900 : 1200;
    const calls = Array.from({ length: cancelled }, () =>
      rejection(caller.startRun(START, options)),
    );
    while (open < calls.length) await new Promise(setImmediate);
    const bystander = caller.startRun({ ...START, requestId: 'last' }, ALLOWED);
    stop.abort();
    const failures = await Promise.all(calls);
    expect(failures).toEqual(calls.map(() => expect.objectContaining({ kind: 'cancelled' })));
    await expect(bystander).resolves.toBeDefined();
    await vi.waitFor(() => expect(open).toBe(0));
    const afterwards = caller.startRun({ ...START, requestId: 'last' }, ALLOWED);
    await expect(afterwards).resolves.toBeDefined();
  });

  it('limits the calls of one person and of one tenant, but not reserved calls (BD-2)', async () => {
    const release = Promise.withResolvers<void>();
    const begun: string[] = [];
    const gate: Gate = async ({ header }) => {
      const [tenant = '', subject = ''] = (header('x-person') ?? '').split('/');
      return { person: { subject, tenant, roles: ['caller'] } };
    };
    const { client } = await start(
      transport,
      {
        startRun: async ({ requestId }) => {
          begun.push(requestId);
          await release.promise;
          return {};
        },
        cancelRun: reserved(async () => ({})),
      },
      { gate, limits: { maxCallsPerPerson: 2, maxCallsPerTenant: 3, maxConcurrentCalls: 4 } },
    );
    const caller = client();
    const as = (person: string) => ({ headers: { 'x-person': person } });
    const startRun = (person: string) => caller.startRun(START, as(person));
    const held = ['acme/ann', 'acme/ann', 'acme/bob'].map(startRun);
    await vi.waitFor(() => expect(begun).toHaveLength(3));
    const tooMany = { reason: 'TOO_MANY_CALLS', kind: 'resource_exhausted' };
    expect(await rejection(startRun('acme/ann'))).toMatchObject({
      ...tooMany,
      message: 'The caller has reached its limit of 2 calls in flight; retry later.',
    });
    expect(await rejection(startRun('acme/cyd'))).toMatchObject({
      ...tooMany,
      message: 'The tenant has reached its limit of 3 calls in flight; retry later.',
    });
    // Another tenant is not affected until the server itself is full.
    held.push(startRun('other/ann'));
    await vi.waitFor(() => expect(begun).toHaveLength(4));
    expect(await rejection(startRun('other/bob'))).toMatchObject(tooMany);
    const stop = { runId: 'run-1', requestId: 'req-2' };
    await expect(caller.cancelRun(stop, as('acme/ann'))).resolves.toBeDefined();
    release.resolve();
    await Promise.all(held);
    await expect(startRun('acme/ann')).resolves.toBeDefined();
  });
});

describe('an edge whose client never ends its requests (BD-2)', () => {
  const limits = { maxUnaryMs: 100, maxCallsPerPerson: 1 };
  const path = '/writ.run.v1.RunService/StartRun';

  it('ends a request over HTTP/1.1, so that it no longer counts against the limits', async () => {
    const { server, client } = await start('edge', { startRun: async () => ({}) }, { limits });
    const socket = connect(server.port, '127.0.0.1');
    onTestFinished(() => void socket.destroy());
    const headers = ['Host: x', `Authorization: Bearer ${KEY}`, 'Content-Type: application/json'];
    socket.write(
      `POST ${path} HTTP/1.1\r\n${headers.join('\r\n')}\r\nContent-Length: 100\r\n\r\n{`,
    );
    const response = await text(socket);
    expect(response).toContain('HTTP/1.1 408 ');
    expect(response).toContain('The request was not received within 100 ms.');
    await vi.waitFor(() => client().startRun(START, ALLOWED));
  });

  it('ends a request over HTTP/2, so that it no longer counts against the limits', async () => {
    const { server, client } = await start('edge', { startRun: async () => ({}) }, { limits });
    const session = connectHttp2(`http://127.0.0.1:${server.port}`);
    onTestFinished(() => session.destroy());
    const stream = session.request({
      ':method': 'POST',
      ':path': path,
      authorization: `Bearer ${KEY}`,
      'content-type': 'application/json',
    });
    stream.write('{');
    const [headers] = await once(stream, 'response');
    stream.resume();
    expect(headers[':status']).toBe(408);
    await once(stream, 'close');
    await vi.waitFor(() => client().startRun(START, ALLOWED));
  });

  it('ends a request to the web hook, but not a request without content (BD-1)', async () => {
    const release = Promise.withResolvers<void>();
    const failed: unknown[] = [];
    const web: WebHook = (request, response) => {
      const ends = request.method === 'GET' ? release.promise : text(request);
      ends.then(
        () => response.end('answer'),
        (error: unknown) => failed.push(error),
      );
      return true;
    };
    const { server } = await start('edge', {}, { limits, web });
    const session = connectHttp2(`http://127.0.0.1:${server.port}`);
    onTestFinished(() => session.destroy());
    const socket = connect(server.port, '127.0.0.1');
    onTestFinished(() => void socket.destroy());
    const without = session.request({ ':path': '/page' });
    const answer = fetch(`http://127.0.0.1:${server.port}/page`);
    const stream = session.request({ ':method': 'POST', ':path': '/page' });
    stream.write('{');
    socket.write('POST /page HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{');
    const [headers] = await once(stream, 'response');
    stream.resume();
    expect(headers[':status']).toBe(408);
    expect(await text(socket)).toContain('HTTP/1.1 408 ');
    await vi.waitFor(() => expect(failed).toHaveLength(2));
    release.resolve();
    expect(await text(without)).toBe('answer');
    expect(await (await answer).text()).toBe('answer');
  });
});
