import { once } from 'node:events';
import { connect as connectHttp2 } from 'node:http2';
import { connect, type Socket } from 'node:net';
import { Health } from '@writ/contracts/grpc/health/v1/health_pb';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { createRpcClient } from '../src/index.ts';
import { ALLOWED, rejection, START, start, TRANSPORTS } from './fixture.ts';

const PREFACE = Buffer.concat([
  Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'),
  // A SETTINGS frame without settings.
  Buffer.from([0, 0, 0, 4, 0, 0, 0, 0, 0]),
]);

/** The HTTP/2 frame type of a ping. */
const PING = 6;

/** Returns the types of the HTTP/2 frames in `bytes`. */
function frameTypes(bytes: Buffer): number[] {
  const types: number[] = [];
  for (let at = 0; at + 9 <= bytes.length; at += 9 + bytes.readUIntBE(at, 3)) {
    types.push(bytes.readUInt8(at + 3));
  }
  return types;
}

async function dial(port: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1');
  onTestFinished(() => void socket.destroy());
  // Tests wait for the end of the connection, with or without an error.
  socket.on('error', () => undefined);
  await once(socket, 'connect');
  return socket;
}

describe.each(TRANSPORTS)('over %s', (transport) => {
  it('closes a connection whose client does not respond to pings (SYS-4)', async () => {
    const { server } = await start(transport, {}, { limits: { connectionPingMs: 100 } });
    const socket = await dial(server.port);
    const chunks: Buffer[] = [];
    socket.on('data', (chunk) => chunks.push(chunk));
    socket.write(PREFACE);
    await once(socket, 'close');
    expect(frameTypes(Buffer.concat(chunks))).toContain(PING);
    expect(socket.readableEnded || socket.errored !== null).toBe(true);
  });

  it('closes an idle connection, but not one with calls (SYS-4)', async () => {
    const limits = { connectionIdleMs: 1_000, connectionPingMs: 1_000 };
    const { server, client } = await start(
      transport,
      {
        async *watchRun(_, { signal }) {
          yield {};
          await new Promise((resolve) => signal.addEventListener('abort', resolve));
        },
      },
      { limits },
    );
    const events = client({ health: 'unchecked' })
      .watchRun({ runId: 'run-1' }, ALLOWED)
      [Symbol.asyncIterator]();
    await events.next();
    let isOver = false;
    const ended = rejection(events.next()).then(() => {
      isOver = true;
    });
    const idle = connectHttp2(`http://127.0.0.1:${server.port}`);
    await once(idle, 'close');
    expect(isOver).toBe(false);
    await server.close(0);
    await ended;
  });

  it('closes connections over the limit and logs it (SYS-4)', async () => {
    const { server, client, lines } = await start(
      transport,
      { startRun: async () => ({}) },
      { limits: { maxConnections: 1 } },
    );
    const first = await dial(server.port);
    const second = await dial(server.port);
    second.resume();
    await once(second, 'close');
    expect(lines()).toContainEqual(
      expect.objectContaining({
        msg: 'connection limit reached; refusing new connections',
        limit: 1,
      }),
    );
    first.destroy();
    await vi.waitFor(() => client().startRun(START, ALLOWED));
  });

  it('closes quiet connections near the limit to accept new ones, those with the fewest received bytes first (BD-2)', async () => {
    const { server, client } = await start(
      transport,
      {
        async *watchRun(_, { signal }) {
          yield {};
          await new Promise((resolve) => signal.addEventListener('abort', resolve));
        },
        startRun: async () => ({}),
      },
      { limits: { maxConnections: 20 } },
    );
    const events = client({ health: 'unchecked' })
      .watchRun({ runId: 'run-1' }, ALLOWED)
      [Symbol.asyncIterator]();
    await events.next();
    let hasEnded = false;
    const ended = rejection(events.next()).finally(() => {
      hasEnded = true;
    });
    for (let count = 0; count < 40; count += 1) await dial(server.port);
    await vi.waitFor(() => client({ health: 'unchecked' }).startRun(START, ALLOWED));
    expect(hasEnded).toBe(false);
    await server.close(0);
    await ended;
  });

  it('limits unauthenticated calls separately from other calls (SYS-4)', async () => {
    const { address, client, telemetry } = await start(
      transport,
      { startRun: async () => ({}) },
      { limits: { maxOpenCalls: 10, maxAnonymousStreams: 10, maxConcurrentCalls: 1 } },
    );
    const health = createRpcClient(Health, { address, telemetry, health: 'unchecked' });
    onTestFinished(() => health.close());
    const watches = Array.from({ length: 9 }, () => health.watch({})[Symbol.asyncIterator]());
    for (const watch of watches) await watch.next();
    expect(await rejection(health.watch({})[Symbol.asyncIterator]().next())).toMatchObject({
      reason: 'TOO_MANY_CALLS',
      metadata: { limit: '9' },
    });
    // Watches can use only part of the limit; the rest is reserved for checks (BD-2).
    await health.check({});
    await client().startRun(START, ALLOWED);
    for (const watch of watches) await watch.return?.();
  });
});
