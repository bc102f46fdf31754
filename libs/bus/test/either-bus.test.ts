import { AsyncLocalStorage } from 'node:async_hooks';
import { InvalidRequestError } from '@writ/kernel';
import { isNatsAvailable } from '@writ/testing/nats';
import { afterAll, describe, expect, it, vi } from 'vitest';
import type { BusMessage } from '../src/index.ts';
import { inProcess, overNats } from './either-bus.ts';
import { keeper, waiter } from './handlers.ts';

const BUSES = [
  { name: 'the in-process bus', kind: inProcess(), isAvailable: true },
  { name: 'the bus over NATS', kind: overNats(), isAvailable: isNatsAvailable() },
];

describe.for(BUSES)('$name', ({ kind, isAvailable }) => {
  const it_ = it.skipIf(!isAvailable);
  afterAll(() => kind.closeAll());

  it_('delivers every matching message unchanged to every durable consumer (HK-2)', async () => {
    const { bus, at, message } = await kind.open();
    const [one, all] = [keeper(), keeper()];
    await bus.subscribe({ subject: at('a.*'), durable: 'one', handler: one.handler });
    await bus.subscribe({ subject: at('>'), durable: 'all', handler: all.handler });
    await bus.publish(message('e1'));
    await bus.publish(message('e2', 'b.a'));
    await bus.publish(message('e3', 'a.x'));
    await vi.waitFor(() => expect(all.ids()).toEqual(['e1', 'e2', 'e3']));
    await vi.waitFor(() => expect(one.ids()).toEqual(['e1', 'e3']));
    const [first] = all.kept;
    expect({ ...first, payload: [...(first?.payload ?? [])] }).toEqual({
      ...message('e1'),
      payload: [1],
    });
  });

  it_('redelivers a failed message before later ones (HK-1, HK-2)', async () => {
    const { bus, at, message, publishWithRetry, failures } = await kind.open();
    const other = keeper();
    const handled: string[] = [];
    const refusals = new Map([
      ['e1', 2],
      ['e3', 1],
    ]);
    await bus.subscribe({ subject: at('>'), durable: 'other', handler: other.handler });
    await bus.subscribe({
      subject: at('>'),
      durable: 'refuses',
      handler: async ({ eventId }) => {
        const left = refusals.get(eventId) ?? 0;
        refusals.set(eventId, left - 1);
        if (left > 0) throw new Error('no');
        handled.push(eventId);
      },
    });
    for (const id of ['e1', 'e2', 'e3', 'e4']) await publishWithRetry(message(id));
    await vi.waitFor(() => expect(handled).toEqual(['e1', 'e2', 'e3', 'e4']));
    await vi.waitFor(() => expect(new Set(other.ids())).toEqual(new Set(handled)));
    expect(failures).toHaveLength(3);
    expect(failures[0]).toEqual({ eventId: 'e1', subject: at('a.b'), durable: 'refuses' });
  });

  it_(
    'drops a message that a handler rejects as invalid, and reports it (HK-2, SYS-6)',
    async () => {
      const { bus, at, message, failures } = await kind.open();
      const [kept, other] = [keeper(), keeper()];
      await bus.subscribe({ subject: at('>'), durable: 'other', handler: other.handler });
      await bus.subscribe({
        subject: at('>'),
        durable: 'rejects',
        handler: async (got) => {
          if (got.eventId === 'bad') throw new InvalidRequestError('MALFORMED_MESSAGE', 'Bad.');
          await kept.handler(got);
        },
      });
      for (const id of ['e1', 'bad', 'e2']) await bus.publish(message(id));
      await vi.waitFor(() => expect(kept.ids()).toEqual(['e1', 'e2']));
      await vi.waitFor(() => expect(other.ids()).toEqual(['e1', 'bad', 'e2']));
      expect(failures).toEqual([
        { eventId: 'bad', subject: at('a.b'), durable: 'rejects', dropped: true },
      ]);
    },
  );

  it_('shares messages among the subscribers of one durable consumer (SYS-5)', async () => {
    const { bus, at, message } = await kind.open();
    const [left, right] = [keeper(), keeper()];
    await bus.subscribe({ subject: at('>'), durable: 'd', handler: left.handler });
    const second = await bus.subscribe({ subject: at('>'), durable: 'd', handler: right.handler });
    const ids = ['1', '2', '3', '4', '5', '6'];
    for (const id of ids) await bus.publish(message(id));
    await vi.waitFor(() => expect([...left.ids(), ...right.ids()].sort()).toEqual(ids));
    await second.unsubscribe();
    await second.unsubscribe();
    const before = right.ids();
    await bus.publish(message('7'));
    await bus.publish(message('8'));
    await vi.waitFor(() => expect(left.ids().slice(-2)).toEqual(['7', '8']));
    expect(right.ids()).toEqual(before);
  });

  it_('rejects a durable consumer that exists with another subject', async () => {
    const { bus, at } = await kind.open();
    const { handler } = keeper();
    await bus.subscribe({ subject: at('>'), durable: 'd', handler });
    await expect(
      bus.subscribe({ subject: at('a.b'), durable: 'd', handler }),
    ).rejects.toMatchObject({
      kind: 'failed_precondition',
      reason: 'BUS_DURABLE_MISMATCH',
      metadata: { durable: 'd' },
    });
  });

  it_('keeps the messages of a durable consumer without subscribers (HK-2)', async () => {
    const { bus, at, message, publishWithRetry } = await kind.open();
    const kept = keeper();
    const options = { subject: at('>'), durable: 'd', handler: kept.handler };
    const first = await bus.subscribe(options);
    await bus.publish(message('1'));
    await vi.waitFor(() => expect(kept.ids()).toEqual(['1']));
    await first.unsubscribe();
    const late = publishWithRetry(message('2'));
    await bus.subscribe(options);
    await late;
    await vi.waitFor(() => expect(kept.ids()).toEqual(['1', '2']));
  });

  it_('redelivers a message whose handler times out', async () => {
    const { bus, at, message, publishWithRetry, failures } = await kind.open({
      handlerTimeoutMs: 20,
    });
    const hanging = waiter();
    const handled: string[] = [];
    let calls = 0;
    await bus.subscribe({
      subject: at('>'),
      durable: 'd',
      handler: async ({ eventId }) => {
        calls += 1;
        if (calls === 1) return hanging.handler();
        handled.push(eventId);
      },
    });
    await publishWithRetry(message('e1'));
    await vi.waitFor(() => expect(handled).toEqual(['e1']));
    expect(failures).toMatchObject([{ eventId: 'e1', durable: 'd' }]);
    hanging.go();
  });

  it_('delivers messages that a handler cannot modify for other handlers', async () => {
    const { bus, at, message } = await kind.open();
    const kept = keeper();
    await bus.subscribe({ subject: at('>'), durable: 'd', handler: kept.handler });
    await bus.publish(message('e1'));
    await vi.waitFor(() => expect(kept.kept).toHaveLength(1));
    expect(Object.isFrozen(kept.kept[0])).toBe(true);
    expect(Object.isFrozen(kept.kept[0]?.headers)).toBe(true);
  });

  it_('runs handlers outside the async context of the publisher (SYS-1)', async () => {
    const { bus, at, message } = await kind.open();
    const span = new AsyncLocalStorage<string>();
    const seen: unknown[] = [];
    const look = async (): Promise<void> => {
      seen.push(span.getStore());
    };
    const subject = at('>');
    await span.run('consumer', () => bus.subscribe({ subject, durable: 'd', handler: look }));
    bus.subscribeLive({ subject, handler: look });
    await span.run('publisher', () => bus.publish(message('e1')));
    await vi.waitFor(() => expect(seen.toSorted()).toEqual(['consumer', undefined]));
  });

  it_('requires a valid name and subject', async () => {
    const { bus, at, message } = await kind.open();
    const { handler } = keeper();
    const bad = { reason: 'INVALID_SUBJECT' };
    await expect(
      bus.subscribe({ subject: at('a..b'), durable: 'd', handler }),
    ).rejects.toMatchObject(bad);
    await expect(
      bus.subscribe({ subject: at('a'), durable: 'a.b', handler }),
    ).rejects.toMatchObject({ metadata: { field: 'durable' } });
    await expect(bus.publish(message('e1', 'a.*'))).rejects.toMatchObject(bad);
  });

  it_(
    'delivers live and durable messages to live subscribers without blocking the publisher',
    async () => {
      const { bus, at, message } = await kind.open();
      const seen: string[] = [];
      bus.subscribeLive({
        subject: at('a.>'),
        handler: ({ eventId }) => {
          seen.push(eventId);
        },
      });
      bus.publishLive(message('live'));
      bus.publishLive(message('other', 'b'));
      expect(seen).toEqual([]);
      await bus.publish(message('durable'));
      await vi.waitFor(() => expect(seen).toEqual(['live', 'durable']));
    },
  );

  it_('drops the oldest messages of a slow live subscriber and reports their number', async () => {
    const { bus, at, message } = await kind.open();
    const slow = waiter();
    const seen: [string, number][] = [];
    bus.subscribeLive({
      subject: at('>'),
      capacity: 2,
      handler: async ({ eventId }, missed) => {
        seen.push([eventId, missed]);
        await slow.handler();
      },
    });
    const passed = keeper();
    bus.subscribeLive({ subject: at('>'), handler: passed.handler });
    bus.publishLive(message('1'));
    await slow.begun;
    for (const id of ['2', '3', '4', '5', '6']) bus.publishLive(message(id));
    await vi.waitFor(() => expect(passed.ids()).toHaveLength(6));
    slow.go();
    await vi.waitFor(() =>
      expect(seen).toEqual([
        ['1', 0],
        ['5', 3],
        ['6', 0],
      ]),
    );
  });

  it_('continues after a live handler throws, and reports the error', async () => {
    const { bus, at, message, failures } = await kind.open();
    const done = Promise.withResolvers<void>();
    bus.subscribeLive({
      subject: at('>'),
      handler: ({ eventId }) => {
        if (eventId === 'bad') throw new Error('no');
        done.resolve();
      },
    });
    bus.publishLive(message('bad'));
    bus.publishLive(message('good'));
    await done.promise;
    expect(failures).toEqual([{ eventId: 'bad', subject: at('a.b') }]);
  });

  it_('delivers nothing after unsubscribing', async () => {
    const { bus, at, message } = await kind.open();
    const [unsubscribed, subscribed] = [keeper(), keeper()];
    const subscription = bus.subscribeLive({ subject: at('>'), handler: unsubscribed.handler });
    bus.publishLive(message('dropped with the queue'));
    await subscription.unsubscribe();
    bus.subscribeLive({ subject: at('>'), handler: subscribed.handler });
    bus.publishLive(message('late'));
    await vi.waitFor(() => expect(subscribed.ids()).toContain('late'));
    expect(unsubscribed.ids()).toEqual([]);
  });

  it_('waits for deliveries in flight at close and accepts no message', async () => {
    const { bus, at, message } = await kind.open();
    const slow = waiter();
    const handled: BusMessage[] = [];
    await bus.subscribe({
      subject: at('>'),
      durable: 'd',
      handler: async (got) => {
        await slow.handler();
        handled.push(got);
      },
    });
    const publishing = bus.publish(message('e1'));
    await slow.begun;
    const closing = bus.close();
    const closed = { reason: 'BUS_CLOSED' };
    await expect(bus.publish(message('e2'))).rejects.toMatchObject(closed);
    expect(handled).toEqual([]);
    slow.go();
    await Promise.all([publishing, closing]);
    expect(handled).toHaveLength(1);
    bus.publishLive(message('e3'));
    expect(() => bus.subscribeLive({ subject: at('>'), handler: slow.handler })).toThrow(
      expect.objectContaining(closed),
    );
    await bus.close();
  });
});
