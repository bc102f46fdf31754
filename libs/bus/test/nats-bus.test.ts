import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { AckPolicy, jetstreamManager } from '@nats-io/jetstream';
import { connect } from '@nats-io/transport-node';
import { startFaultProxy } from '@writ/testing/faults';
import { isNatsAvailable, type NatsServer, startNatsServer } from '@writ/testing/nats';
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import type { Bus, BusMessage } from '../src/index.ts';
import { createNatsBus, type NatsBusOptions } from '../src/nats/index.ts';
import { keeper, waiter } from './handlers.ts';

const reason = (error: unknown) => (error as { readonly reason?: string }).reason;

/** A fake NATS server that sends the given INFO. */
async function fakeServer(info: object) {
  const server = createServer((socket) => {
    socket.on('error', () => socket.destroy());
    socket.write(
      `INFO ${JSON.stringify({ max_payload: 1024, proto: 1, headers: true, ...info })}\r\n`,
    );
    socket.on('data', (chunk) => {
      if (chunk.includes('PING')) socket.write('PONG\r\n');
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return { address: `127.0.0.1:${port}`, close: () => server.close() };
}

describe('the start of a bus over NATS', () => {
  it.each([
    ['BUS_SERVER_TOO_OLD', { version: '2.8.4', jetstream: true }],
    ['BUS_JETSTREAM_DISABLED', { version: '2.9.0' }],
  ])('rejects an unsuitable server: %s (HK-2)', async (expected, info) => {
    const server = await fakeServer(info);
    const options = { servers: [server.address], name: 'x', onError: () => undefined };
    await expect(createNatsBus(options)).rejects.toMatchObject({
      kind: 'failed_precondition',
      reason: expected,
    });
    server.close();
  });
});

describe.skipIf(!isNatsAvailable())('a bus over NATS', () => {
  let server: NatsServer;
  const buses: Bus[] = [];
  let tests = 0;

  beforeAll(async () => {
    server = await startNatsServer();
  });
  afterAll(async () => {
    await Promise.all(buses.map((bus) => bus.close()));
    await server?.stop();
  });

  const fresh = (): string => {
    tests += 1;
    return `n${tests}`;
  };

  async function open(token: string, options: Partial<NatsBusOptions> = {}) {
    const errors: unknown[] = [];
    const bus = await createNatsBus({
      servers: [server.address],
      name: token,
      streams: [{ name: token, subjects: [`${token}.>`] }],
      streamBytes: 2 ** 20,
      retryBaseMs: 5,
      retryMaxMs: 20,
      onError: (error) => errors.push(error),
      ...options,
    });
    buses.push(bus);
    return { bus, errors };
  }

  function message(token: string, eventId: string): BusMessage {
    const payload = new Uint8Array([1]);
    return { eventId, subject: `${token}.a`, payload, headers: { traceparent: 'tp' } };
  }

  async function manage<T>(
    work: (manager: Awaited<ReturnType<typeof jetstreamManager>>) => Promise<T>,
  ): Promise<T> {
    const connection = await connect({ servers: server.address });
    try {
      return await work(await jetstreamManager(connection));
    } finally {
      await connection.close();
    }
  }

  it('delivers a repeated message once, with the headers for id and trace (HK-2, SYS-1)', async () => {
    const token = fresh();
    const { bus } = await open(token);
    const kept = keeper();
    await bus.subscribe({ subject: `${token}.>`, durable: 'd', handler: kept.handler });
    const connection = await connect({ servers: server.address });
    const raw = connection.subscribe(`${token}.>`, { max: 1 });
    await connection.flush();
    for (const id of ['e1', 'e1', 'e2']) await bus.publish(message(token, id));
    await vi.waitFor(() => expect(kept.ids()).toEqual(['e1', 'e2']));
    for await (const { headers } of raw) {
      expect(headers?.get('Nats-Msg-Id')).toBe('e1');
      expect(headers?.get('traceparent')).toBe('tp');
    }
    await connection.close();
  });

  it('resolves a publish when the server has stored the message, before a consumer handles it (HK-2)', async () => {
    const token = fresh();
    const { bus } = await open(token);
    const slow = waiter();
    await bus.subscribe({ subject: `${token}.>`, durable: 'd', handler: slow.handler });
    await bus.publish(message(token, 'e1'));
    await bus.publish(message(token, 'e2'));
    const stored = await manage((manager) => manager.streams.info(token));
    expect(stored.state.messages).toBe(2);
    slow.go();
    // Acknowledged messages are deleted.
    await vi.waitFor(async () => {
      const { state } = await manage((manager) => manager.streams.info(token));
      expect(state.messages).toBe(0);
    });
  });

  it('rejects messages until the required consumers exist (HK-2)', async () => {
    const token = fresh();
    const { bus } = await open(token, { requiredConsumers: ['d'] });
    await expect(bus.publish(message(token, 'e1'))).rejects.toMatchObject({
      kind: 'unavailable',
      reason: 'BUS_NO_SUBSCRIBER',
      metadata: { durable: 'd' },
    });
    const { handler } = keeper();
    await bus.subscribe({ subject: `${token}.>`, durable: 'd', handler });
    await bus.publish(message(token, 'e1'));
  });

  it('rejects messages when the stream is full and loses none (HK-2)', async () => {
    const token = fresh();
    const { bus } = await open(token, { streamBytes: 4_096 });
    const slow = waiter();
    const kept = keeper();
    await bus.subscribe({
      subject: `${token}.>`,
      durable: 'd',
      handler: async (got) => {
        await slow.handler();
        await kept.handler(got);
      },
    });
    const handled: string[] = [];
    const big = { ...message(token, ''), payload: new Uint8Array(500) };
    const full = async (): Promise<unknown> => {
      for (;;) {
        const eventId = `e${handled.length}`;
        try {
          await bus.publish({ ...big, eventId });
        } catch (error) {
          return error;
        }
        handled.push(eventId);
      }
    };
    expect(await full()).toMatchObject({ kind: 'unavailable', reason: 'BUS_DELIVERY_FAILED' });
    expect(handled.length).toBeGreaterThan(2);
    slow.go();
    await vi.waitFor(() => expect(kept.ids()).toEqual(handled));
    await vi.waitFor(() => bus.publish({ ...big, eventId: 'after' }));
  });

  it('redelivers the message of an unreachable subscriber to another subscriber (RT-3)', async () => {
    const token = fresh();
    const wire = await startFaultProxy(server.address);
    const hanging = waiter();
    const { bus: lost } = await open(token, { ackWaitMs: 200, servers: [wire.address] });
    const subject = `${token}.>`;
    await lost.subscribe({ subject, durable: 'd', handler: hanging.handler });
    const { bus } = await open(token);
    await bus.publish(message(token, 'e1'));
    await hanging.begun;
    const kept = keeper();
    await bus.subscribe({ subject, durable: 'd', handler: kept.handler });
    await bus.publish(message(token, 'e2'));
    wire.fail('stalled');
    await vi.waitFor(() => expect(kept.ids()[0]).toBe('e1'));
    wire.fail('down');
    hanging.go();
    await lost.close();
    await vi.waitFor(() => expect(new Set(kept.ids())).toEqual(new Set(['e1', 'e2'])));
    await wire.close();
  });

  it('rejects a stream with other settings, and a missing stream that it must not create (HK-2)', async () => {
    const token = fresh();
    await manage((manager) =>
      manager.streams.add({ name: token, subjects: [`${token}.>`], retention: 'limits' }),
    );
    await expect(open(token)).rejects.toMatchObject({
      reason: 'BUS_STREAM_MISMATCH',
      metadata: { field: 'retention' },
    });
    const missing = [{ name: fresh(), subjects: ['nowhere.>'] }];
    const { bus, errors } = await open(token, {
      streams: missing,
      createsStreams: false,
      startTimeoutMs: 1,
    });
    await vi.waitFor(() => expect(errors.map(reason)).toContain('BUS_STREAM_MISSING'));
    await expect(bus.publish({ ...message('nowhere', 'e1') })).rejects.toMatchObject({
      reason: 'BUS_UNREACHABLE',
    });
  });

  it('adds the events of a newer release to a stream, which older replicas accept (BD-6)', async () => {
    const token = fresh();
    const plan = (...events: string[]) => [
      { name: token, subjects: events.map((event) => `${token}.*.${event}`) },
    ];
    const publish = (bus: Bus, event: string) =>
      bus.publish({ ...message(token, event), subject: `${token}.r1.${event}` });
    await open(token, { streams: plan('A', 'B') });
    const emitter = await open(token, { streams: plan('B', 'C'), createsStreams: false });
    await publish(emitter.bus, 'B');
    // The emitter does not change the stream.
    await expect(publish(emitter.bus, 'C')).rejects.toMatchObject({
      kind: 'unavailable',
      reason: 'BUS_DELIVERY_FAILED',
    });
    await open(token, { streams: plan('B', 'C') });
    await publish(emitter.bus, 'C');
    const older = await open(token, { streams: plan('A', 'B') });
    await publish(older.bus, 'A');
    const { config } = await manage((manager) => manager.streams.info(token));
    expect(config.subjects.toSorted()).toEqual(['A', 'B', 'C'].map((it) => `${token}.*.${it}`));
  });

  it('accepts a stream with wider subjects (BD-6)', async () => {
    const token = fresh();
    await open(token);
    const { bus } = await open(token, { streams: [{ name: token, subjects: [`${token}.a`] }] });
    await bus.publish(message(token, 'e1'));
    const { config } = await manage((manager) => manager.streams.info(token));
    expect(config.subjects).toEqual([`${token}.>`]);
  });

  it('rejects settings that the server would ignore silently (HK-2)', async () => {
    const streamConfig = { allow_what_no_server_knows: true };
    await expect(open(fresh(), { streamConfig })).rejects.toMatchObject({
      kind: 'failed_precondition',
      // nats-server 2.12 and later reject unknown settings.
      reason: expect.stringMatching(/^BUS_(FEATURE_UNSUPPORTED|SETTING_REJECTED)$/),
      message: expect.stringMatching(/ stream n\d+/),
    });
  });

  it('rejects a consumer that would reorder messages (HK-1)', async () => {
    const token = fresh();
    const { bus } = await open(token);
    await manage((manager) =>
      manager.consumers.add(token, { durable_name: 'd', ack_policy: AckPolicy.Explicit }),
    );
    const { handler } = keeper();
    await expect(
      bus.subscribe({ subject: `${token}.>`, durable: 'd', handler }),
    ).rejects.toMatchObject({
      reason: 'BUS_CONSUMER_MISMATCH',
      metadata: { field: 'max_ack_pending' },
    });
  });

  it('filters a subject that matches one or several subjects of the stream', async () => {
    const token = fresh();
    const streams = [{ name: token, subjects: [`${token}.*.X`, `${token}.*.Y`] }];
    const { bus } = await open(token, { streams });
    const [within, across] = [keeper(), keeper()];
    const subscribe = (durable: string, subject: string, { handler }: typeof within) =>
      bus.subscribe({ durable, subject: `${token}.${subject}`, handler });
    await subscribe('within', 't1.X', within);
    await subscribe('across', 't1.*', across);
    for (const subject of ['t1.X', 't2.X', 't1.Y', 't2.Y', 't1.X']) {
      const eventId = `${within.ids().length}-${subject}-${Math.random()}`;
      await bus.publish({ ...message(token, eventId), subject: `${token}.${subject}` });
    }
    const published = (kept: typeof within) =>
      kept.kept.map((got) => got.subject.slice(token.length + 1));
    await vi.waitFor(() => expect(published(across)).toEqual(['t1.X', 't1.Y', 't1.X']));
    await vi.waitFor(() => expect(published(within)).toEqual(['t1.X', 't1.X']));
    await expect(subscribe('none', 'q.Z', within)).rejects.toMatchObject({
      reason: 'INVALID_SUBJECT',
    });
  });

  it('rejects reserved headers and messages above the maximum payload', async () => {
    const token = fresh();
    const { bus } = await open(token);
    const order = { ...message(token, 'e1'), headers: { 'Nats-TTL': '1s' } };
    await expect(bus.publish(order)).rejects.toMatchObject({ reason: 'INVALID_HEADER' });
    const large = { ...message(token, 'e1'), payload: new Uint8Array(2 ** 20 + 1) };
    await expect(bus.publish(large)).rejects.toMatchObject({ reason: 'BUS_MESSAGE_TOO_LARGE' });
  });

  it('delivers live messages after a connection was lost while one was in flight (SUP-1)', async () => {
    const token = fresh();
    const wire = await startFaultProxy(server.address);
    onTestFinished(() => wire.close());
    const { bus } = await open(token, { servers: [wire.address] });
    const { bus: watcher } = await open(token);
    const live = keeper();
    const subject = `live.${token}`;
    watcher.subscribeLive({ subject, capacity: 10_000, handler: live.handler });
    // The subscription precedes this message on the connection of the watcher.
    await watcher.publish(message(token, 'subscribed'));
    const publishLive = (eventId: string) =>
      bus.publishLive({ ...message(token, eventId), subject });
    wire.fail('stalled');
    publishLive('in flight');
    await expect.poll(() => wire.held).toBeGreaterThan(0);
    wire.fail('down');
    wire.fail('none');
    await vi.waitFor(() => bus.publish(message(token, 'reconnected')));
    // More messages than may be in flight at the same time.
    for (let n = 0; n < 5_000; n += 1) {
      publishLive(`live-${n}`);
      if (n % 500 === 0) await bus.publish(message(token, `confirmed-${n}`));
    }
    publishLive('last');
    await vi.waitFor(() => expect(live.ids()).toContain('last'));
    expect(live.ids()).toHaveLength(5_001);
  });

  it('starts without a server and connects when it is available (HK-2)', async () => {
    const token = fresh();
    const other = await startNatsServer();
    onTestFinished(() => other.stop());
    await other.kill();
    const { bus } = await open(token, {
      servers: [other.address],
      startTimeoutMs: 1,
      ackWaitMs: 300,
      requiredConsumers: ['d'],
    });
    const kept = keeper();
    const live = keeper();
    await bus.subscribe({ subject: `${token}.>`, durable: 'd', handler: kept.handler });
    bus.subscribeLive({ subject: `${token}.>`, handler: live.handler });
    bus.publishLive(message(token, 'not delivered'));
    await expect(bus.publish(message(token, 'e1'))).rejects.toMatchObject({
      kind: 'unavailable',
      reason: 'BUS_UNREACHABLE',
    });
    await other.start();
    await vi.waitFor(() => bus.publish(message(token, 'e1')));
    await vi.waitFor(() => expect(kept.ids()).toEqual(['e1']));
    await other.kill();
    await vi.waitFor(() => expect(bus.publish(message(token, 'e2'))).rejects.toThrow('NATS'));
    await other.start();
    await vi.waitFor(() => bus.publish(message(token, 'e2')));
    // A killed server may have lost the last acknowledgement.
    await vi.waitFor(() => expect([...new Set(kept.ids())]).toEqual(['e1', 'e2']));
    await vi.waitFor(() => expect(live.ids()).toContain('e2'));
    await bus.close();
  });
});
