import { once } from 'node:events';
import { Agent, type ClientRequest, get as httpGet, type IncomingMessage } from 'node:http';
import { connect } from 'node:http2';
import { RunService, type WatchRunResponse } from '@writ/contracts/writ/run/v1/run_service_pb';
import { afterEach, describe, expect, it, vi } from 'vitest';
import type { EdgeOptions, EventStream } from '../src/edge/index.ts';
import { endless, type StreamHandler } from '../src/index.ts';
import { KEY, start } from './fixture.ts';

const STREAM: EventStream = {
  method: RunService.method.watchRun,
  path: '/v1/runs/{run_id}/events',
  resumeField: 'after_sequence',
  isHeartbeat: () => false,
  idOf: (response) => String((response as WatchRunResponse).event?.sequence),
};

type Watch = StreamHandler<
  typeof RunService.method.watchRun.input,
  typeof RunService.method.watchRun.output
>;

const edge = (watchRun: Watch, options: Partial<EdgeOptions> = {}) =>
  start('edge', { watchRun: endless(watchRun) }, { eventStreams: [STREAM], ...options });

describe('event streams of an edge', () => {
  const requests: ClientRequest[] = [];
  afterEach(() => {
    for (const request of requests.splice(0)) request.destroy();
  });

  /** Opens a stream; resolves with the response before its body is read. */
  const open = (port: number, agent?: Agent) =>
    new Promise<IncomingMessage>((resolve, reject) => {
      const headers = { authorization: `Bearer ${KEY}` };
      const path = '/v1/runs/run-1/events';
      const request = httpGet({ port, path, headers, ...(agent && { agent }) }, resolve);
      // The request is destroyed at the end of the test.
      request.on('error', reject);
      requests.push(request);
    });

  it('abort the call when the client disconnects (SUP-6)', async () => {
    const ended = Promise.withResolvers<void>();
    const { server } = await edge(async function* (_, { signal }) {
      try {
        yield { event: { sequence: 1n } };
        await new Promise((resolve) => signal.addEventListener('abort', resolve));
      } finally {
        ended.resolve();
      }
    });
    const response = await open(server.port);
    response.once('data', () => response.destroy()).on('error', () => undefined);
    await ended.promise;
  });

  it('apply the backpressure of a slow reader to the handler, and disconnect the reader (BD-1)', async () => {
    const ended = Promise.withResolvers<void>();
    const value = { reason: 'x'.repeat(65_536) };
    let sent = 0;
    const { server } = await edge(
      async function* () {
        try {
          for (;;) {
            sent += 1;
            yield {
              event: { sequence: BigInt(sent), entry: { case: 'decision' as const, value } },
            };
          }
        } finally {
          ended.resolve();
        }
      },
      { limits: { maxUnaryMs: 500 } },
    );
    const response = await open(server.port);
    response.on('error', () => undefined);
    await ended.promise;
    // At most the buffers of the two sockets and one message of the server are filled.
    expect(sent * 65_536).toBeLessThan(64 * 1024 * 1024);
  });

  it('end at once for a client that reads nothing when the server shuts down (SYS-4, SYS-5)', async () => {
    const value = { reason: 'x'.repeat(65_536) };
    let sent = 0;
    const { server } = await edge(async function* () {
      for (;;) {
        sent += 1;
        yield { event: { sequence: BigInt(sent), entry: { case: 'decision' as const, value } } };
      }
    });
    const response = await open(server.port);
    response.on('error', () => undefined);
    // Waits until the buffers of the two sockets are full.
    let before = 0;
    const isFull = () => {
      const full = sent > 0 && sent === before;
      before = sent;
      return full;
    };
    await vi.waitUntil(isFull, { interval: 250 });
    const closedAt = performance.now();
    await server.close(30_000);
    expect(performance.now() - closedAt).toBeLessThan(20_000);
  });

  it('end when a message is written after the connection has closed (SUP-6, BD-2)', async () => {
    const STREAMS = 200;
    let ended = 0;
    let begun = 0;
    const { address } = await edge(async function* () {
      begun += 1;
      try {
        for (;;) {
          yield { event: { sequence: 1n } };
          await new Promise(setImmediate);
        }
      } finally {
        ended += 1;
      }
    });
    const session = connect(`http://${address}`);
    session.on('error', () => undefined);
    await once(session, 'remoteSettings');
    const headers = { authorization: `Bearer ${KEY}`, ':path': '/v1/runs/run-1/events' };
    for (let count = 0; count < STREAMS; count += 1) {
      session
        .request(headers)
        .on('error', () => undefined)
        .resume();
    }
    await expect.poll(() => begun).toBe(STREAMS);
    session.destroy();
    await expect.poll(() => ended).toBe(STREAMS);
  });

  it('end with a failure event when the server shuts down, so that the client reconnects (SYS-4)', async () => {
    const { server, address } = await edge(async function* (_, { signal }) {
      yield { event: { sequence: 7n } };
      await new Promise((resolve) => signal.addEventListener('abort', resolve));
    });
    const headers = { authorization: `Bearer ${KEY}`, accept: 'text/event-stream' };
    const response = await fetch(`http://${address}/v1/runs/run-1/events`, { headers });
    await server.close(1_000);
    const text = await response.text();
    expect(text).toMatch(/^id: 7\ndata: \{"event":\{"sequence":"7"\}\}\n\nevent: failure\ndata: /);
    expect(text).toContain('"reason":"DRAINING"');
  });

  it('serve 1,000 watches, count them against the limits of calls, and release them (BD-2)', async () => {
    let watched = 0;
    const { server } = await edge(
      async function* (_, { signal }) {
        watched += 1;
        try {
          yield { event: { sequence: 1n } };
          await new Promise((resolve) => signal.addEventListener('abort', resolve));
        } finally {
          watched -= 1;
        }
      },
      { limits: { maxCallsPerPerson: 1_000 } },
    );
    const agent = new Agent({ maxSockets: Number.POSITIVE_INFINITY });
    const opened = await Promise.all(Array.from({ length: 1_000 }, () => open(server.port, agent)));
    expect(opened.every(({ statusCode }) => statusCode === 200)).toBe(true);
    expect(watched).toBe(1_000);
    const refused = await open(server.port);
    expect(refused.statusCode).toBe(429);
    for (const response of opened) response.on('error', () => undefined).destroy();
    await vi.waitFor(() => expect(watched).toBe(0));
    expect((await open(server.port)).statusCode).toBe(200);
    agent.destroy();
  });
});
