import { AsyncLocalStorage } from 'node:async_hooks';
import { getEventListeners } from 'node:events';
import { Client } from '@grpc/grpc-js';
import { NotFoundError, type WritError } from '@writ/kernel';
import { createTelemetry } from '@writ/telemetry';
import { expect, it, onTestFinished, vi } from 'vitest';
import { createRpcServer, Loopback } from '../src/index.ts';
import { MessageQueue } from '../src/loopback/message-queue.ts';
import { ALLOWED, clientOf, drained, gate, rejection, runRoute, START, start } from './fixture.ts';

/** An unused address, where only a call without a connection can succeed. */
const UNUSED = '127.0.0.1:1';

it('calls a server of the same process without a connection (SYS-5)', async () => {
  const { server, telemetry, loopback } = await start('loopback', {
    startRun: async () => ({ run: { runId: 'local' } }),
    async *watchRun() {
      yield { event: { sequence: 1n } };
    },
  });
  const found = loopback?.find(server.address);
  if (found === undefined || loopback === undefined)
    throw new Error('The server is not in the registry.');
  loopback.add(UNUSED, found);
  const client = clientOf(UNUSED, telemetry, { loopback });
  expect((await client.startRun(START, ALLOWED)).run?.runId).toBe('local');
  expect(await drained(client.watchRun({ runId: 'r' }, ALLOWED))).toMatchObject({
    got: [{ event: { sequence: 1n } }],
  });
  const apart = clientOf(UNUSED, telemetry, {
    loopback: new Loopback(),
    retry: { maxAttempts: 1 },
  });
  expect(await rejection(apart.startRun(START, ALLOWED))).toMatchObject({ kind: 'unavailable' });
});

it('opens no connection to a server of the same process that is not serving or is closed (SYS-5)', async () => {
  const { server, loopback, telemetry, client } = await start('loopback', {
    startRun: async () => ({ run: { runId: 'local' } }),
  });
  const connections = vi.spyOn(Client.prototype, 'makeUnaryRequest');
  const startRun = async (health: 'serving' | 'responding') =>
    await client({ health, retry: { maxAttempts: 1 } }).startRun(START, ALLOWED);
  server.setServing(false);
  const refused = await rejection(startRun('serving'));
  expect(refused).toMatchObject({ kind: 'unavailable' });
  // Other services fetch keys from a service before it reports SERVING.
  expect((await startRun('responding')).run?.runId).toBe('local');
  expect(connections).not.toHaveBeenCalled();
  // The error is the same as over a connection.
  const apart = clientOf(server.address, telemetry, { retry: { maxAttempts: 1 } });
  expect(await rejection(apart.startRun(START, ALLOWED))).toMatchObject({
    reason: (refused as WritError).reason,
    message: (refused as WritError).message,
  });
  expect(connections).toHaveBeenCalled();
  connections.mockClear();
  server.setServing(true);
  expect((await startRun('serving')).run?.runId).toBe('local');
  await server.close(0);
  expect(await rejection(startRun('serving'))).toMatchObject({ reason: 'DRAINING' });
  expect(loopback?.find(server.address)).toBeDefined();
  expect(connections).not.toHaveBeenCalled();
});

/** A server that has not started, and a client of it. */
async function unstarted(handlers: Parameters<typeof runRoute>[0]) {
  const telemetry = createTelemetry({ service: 'test', logLevel: 'silent' });
  const loopback = new Loopback();
  const server = await createRpcServer({
    host: '127.0.0.1',
    port: 0,
    routes: [runRoute(handlers)],
    gate,
    telemetry,
    loopback,
  });
  onTestFinished(() => server.close(0));
  const client = clientOf(server.address, telemetry, { loopback, retry: { maxAttempts: 1 } });
  return { server, client };
}

it('waits for the start of a server, up to the deadline of the call (SYS-5)', async () => {
  const { server, client } = await unstarted({
    startRun: async () => ({ run: { runId: 'local' } }),
  });
  expect(await rejection(client.startRun(START, { ...ALLOWED, timeoutMs: 20 }))).toMatchObject({
    kind: expect.stringMatching(/unavailable|deadline_exceeded/),
  });
  const started = client.startRun(START, ALLOWED);
  await new Promise(setImmediate);
  server.setServing(true);
  expect((await started).run?.runId).toBe('local');
});

it('rejects calls that wait for the start of a server that closes instead (SYS-4, SYS-5)', async () => {
  const startRun = vi.fn(async () => ({}));
  const { server, client } = await unstarted({ startRun });
  const waiting = rejection(client.startRun(START, ALLOWED));
  await new Promise(setImmediate);
  await server.close(0);
  expect(await waiting).toMatchObject({ kind: 'unavailable', reason: 'DRAINING' });
  expect(startRun).not.toHaveBeenCalled();
});

it('cancels a call that is aborted while it waits for the start of a server (SYS-3)', async () => {
  const { client } = await unstarted({ startRun: async () => ({}) });
  const aborting = new AbortController();
  const { signal } = aborting;
  const unary = rejection(client.startRun(START, { ...ALLOWED, signal }));
  const stream = drained(client.watchRun({ runId: 'r' }, { ...ALLOWED, signal }));
  await new Promise(setImmediate);
  aborting.abort(new Error('not needed'));
  expect(await unary).toMatchObject({ kind: 'cancelled' });
  expect((await stream).error).toMatchObject({ kind: 'cancelled' });
});

it('cancels a call that is aborted at any time after the start of its server (SYS-3)', async () => {
  const forever = (): Promise<never> => new Promise(() => undefined);
  for (let turns = 0; turns < 12; turns += 1) {
    const { server, client } = await unstarted({
      startRun: forever,
      async *watchRun() {
        yield await forever();
      },
    });
    const aborting = new AbortController();
    const options = { ...ALLOWED, signal: aborting.signal, timeoutMs: 5_000 };
    const unary = rejection(client.startRun(START, options));
    const stream = drained(client.watchRun({ runId: 'r' }, options));
    await new Promise(setImmediate);
    server.setServing(true);
    // A turn of the microtask queue for each wait between the start of the server and that of the handler.
    for (let turn = 0; turn < turns; turn += 1) await undefined;
    aborting.abort(new Error('not needed'));
    expect(await unary).toMatchObject({ kind: 'cancelled' });
    expect((await stream).error).toMatchObject({ kind: 'cancelled' });
  }
});

it('runs a handler outside the context of the code that calls it (SYS-5)', async () => {
  const transaction = new AsyncLocalStorage<string>();
  const seen: unknown[] = [];
  const { client } = await start('loopback', {
    startRun: async () => {
      seen.push(transaction.getStore());
      return {};
    },
    async *watchRun() {
      seen.push(transaction.getStore());
      yield { event: { sequence: 1n } };
      seen.push(transaction.getStore());
    },
  });
  await transaction.run('caller', async () => {
    await client().startRun(START, ALLOWED);
    await drained(client().watchRun({ runId: 'r' }, ALLOWED));
  });
  expect(seen).toEqual([undefined, undefined, undefined]);
});

it('applies backpressure of a slow reader, and ends the stream when the reader stops (BD-1)', async () => {
  let produced = 0;
  const ended = Promise.withResolvers<unknown>();
  const { client } = await start('loopback', {
    async *watchRun(_request, { signal }) {
      signal.addEventListener('abort', () => ended.resolve(signal.reason));
      for (let n = 0; n < 1_000; n += 1) {
        produced += 1;
        yield { event: { sequence: BigInt(n), agent: { name: 'x'.repeat(10_000) } } };
      }
    },
  });
  for await (const { event } of client().watchRun({ runId: 'r' }, ALLOWED)) {
    expect(event?.sequence).toBe(0n);
    await vi.waitFor(() => expect(produced).toBeGreaterThan(6));
    break;
  }
  expect(await ended.promise).toMatchObject({ kind: 'cancelled' });
  expect(produced).toBeLessThan(12);
});

it('removes the abort listener when the wait for a slow reader ends (BD-1)', async () => {
  const { signal } = new AbortController();
  const queue = new MessageQueue();
  const messages = queue[Symbol.asyncIterator]();
  for (let n = 0; n < 5; n += 1) {
    const pushed = queue.push(Buffer.alloc(100_000), signal);
    expect(getEventListeners(signal, 'abort')).toHaveLength(1);
    await messages.next();
    await pushed;
  }
  expect(getEventListeners(signal, 'abort')).toEqual([]);
});

it('delivers the messages before an error to a slow reader (SYS-3)', async () => {
  const thrown = Promise.withResolvers<void>();
  const { client } = await start('loopback', {
    async *watchRun() {
      for (const sequence of [1n, 2n, 3n]) yield { event: { sequence } };
      thrown.resolve();
      throw new NotFoundError('RUN_NOT_FOUND', 'Run r does not exist.', { run_id: 'r' });
    },
  });
  const got: unknown[] = [];
  const read = async () => {
    for await (const { event } of client().watchRun({ runId: 'r' }, ALLOWED)) {
      await thrown.promise;
      got.push(event?.sequence);
    }
  };
  expect(await rejection(read())).toMatchObject({
    kind: 'not_found',
    reason: 'RUN_NOT_FOUND',
    metadata: { run_id: 'r' },
  });
  expect(got).toEqual([1n, 2n, 3n]);
});
