import { AsyncLocalStorage } from 'node:async_hooks';
import { describe, expect, it } from 'vitest';
import { keeper, waiter } from '../test/handlers.ts';
import { message, open } from '../test/in-process.ts';
import type { BusMessage } from './bus.ts';

const noError = () => expect.unreachable();

describe('durable subscribers of the in-process bus', () => {
  it('have handled a message when publish resolves (HK-2, SYS-5)', async () => {
    const { bus } = open();
    const slow = waiter();
    const quick = keeper();
    await bus.subscribe({ subject: 'a.*', durable: 'slow', handler: slow.handler });
    await bus.subscribe({ subject: '>', durable: 'quick', handler: quick.handler });
    let resolved = false;
    const publishing = bus.publish(message('e1')).then(() => {
      resolved = true;
    });
    await slow.begun;
    expect(quick.kept).toEqual([message('e1')]);
    expect(resolved).toBe(false);
    slow.go();
    await publishing;
  });

  it('all receive a message that one of them fails to handle, and publish rejects', async () => {
    const { bus, failures } = open();
    const before = keeper();
    const after = keeper();
    let calls = 0;
    const failOnce = async (): Promise<void> => {
      calls += 1;
      if (calls === 1) throw new Error('no');
    };
    await bus.subscribe({ subject: 'a.b', durable: 'before', handler: before.handler });
    await bus.subscribe({ subject: 'a.b', durable: 'refuses', handler: failOnce });
    await bus.subscribe({ subject: 'a.b', durable: 'after', handler: after.handler });
    await expect(bus.publish(message('e1'))).rejects.toMatchObject({
      kind: 'unavailable',
      reason: 'BUS_DELIVERY_FAILED',
      metadata: { event_id: 'e1', durable: 'refuses' },
      cause: expect.objectContaining({ message: 'no' }),
    });
    expect(failures).toEqual([{ eventId: 'e1', subject: 'a.b', durable: 'refuses' }]);
    await bus.publish(message('e1'));
    expect([before.ids(), after.ids()]).toEqual([
      ['e1', 'e1'],
      ['e1', 'e1'],
    ]);
  });

  it('receive a batch in order, with handleAll in one call, and publishAll waits for them (HK-1, HK-2)', async () => {
    const { bus } = open({ onError: noError });
    const together: string[][] = [];
    const handleAll = async (messages: readonly BusMessage[]): Promise<void> => {
      together.push(messages.map(({ eventId }) => eventId));
    };
    const one = keeper();
    const handler = () => Promise.reject(new Error('not together'));
    await bus.subscribe({ subject: 'a.*', durable: 'together', handler, handleAll });
    await bus.subscribe({ subject: '>', durable: 'one', handler: one.handler });
    await bus.publishAll?.([message('e1'), message('e2', 'b.b'), message('e3')]);
    expect(together).toEqual([['e1', 'e3']]);
    expect(one.ids()).toEqual(['e1', 'e2', 'e3']);
  });

  it('make publishAll reject if one of them is missing or fails to handle the batch', async () => {
    const { bus, failures } = open({ requiredConsumers: ['d'] });
    await expect(bus.publishAll?.([message('e1')])).rejects.toMatchObject({
      reason: 'BUS_NO_SUBSCRIBER',
    });
    const kept = keeper();
    await bus.subscribe({
      subject: '>',
      durable: 'd',
      handler: kept.handler,
      handleAll: () => Promise.reject(new Error('no')),
    });
    await expect(bus.publishAll?.([message('e1'), message('e2')])).rejects.toMatchObject({
      kind: 'unavailable',
      reason: 'BUS_DELIVERY_FAILED',
      cause: expect.objectContaining({ message: 'no' }),
    });
    expect(failures).toEqual([]);
    expect(kept.ids()).toEqual([]);
  });

  it('receive only messages that match their subject', async () => {
    const { bus } = open();
    const kept = keeper();
    await bus.subscribe({ subject: 'a.*', durable: 'd', handler: kept.handler });
    await bus.publish(message('no', 'b.a'));
    await bus.publish(message('yes', 'a.x'));
    expect(kept.ids()).toEqual(['yes']);
  });

  it('share the messages of one consumer name, as with NATS', async () => {
    const { bus } = open();
    const [left, right] = [keeper(), keeper()];
    await bus.subscribe({ subject: '>', durable: 'd', handler: left.handler });
    const second = await bus.subscribe({ subject: '>', durable: 'd', handler: right.handler });
    for (const id of ['1', '2', '3', '4']) await bus.publish(message(id));
    expect([left.ids(), right.ids()]).toEqual([
      ['1', '3'],
      ['2', '4'],
    ]);
    await second.unsubscribe();
    await second.unsubscribe();
    await bus.publish(message('5'));
    await bus.publish(message('6'));
    expect(left.ids()).toEqual(['1', '3', '5', '6']);
    await expect(
      bus.subscribe({ subject: 'a.b', durable: 'd', handler: left.handler }),
    ).rejects.toMatchObject({ reason: 'BUS_DURABLE_MISMATCH' });
  });

  it('lose no message while unsubscribed, because publishing fails (HK-2)', async () => {
    const { bus } = open({ requiredConsumers: ['timeline'] });
    const withoutSubscribers = { kind: 'unavailable', reason: 'BUS_NO_SUBSCRIBER' };
    await expect(bus.publish(message('early'))).rejects.toMatchObject(withoutSubscribers);
    expect(bus.hasSubscribers()).toBe(false);
    const kept = keeper();
    const options = { subject: 'a.b', durable: 'timeline', handler: kept.handler };
    const subscription = await bus.subscribe(options);
    await bus.publish(message('early'));
    expect(bus.hasSubscribers()).toBe(true);
    await subscription.unsubscribe();
    await expect(bus.publish(message('late'))).rejects.toMatchObject(withoutSubscribers);
    await bus.subscribe(options);
    await bus.publish(message('late'));
    expect(kept.ids()).toEqual(['early', 'late']);
  });

  it('make publish reject when their handler times out', async () => {
    const { bus } = open({ handlerTimeoutMs: 2 });
    const hanging = waiter();
    await bus.subscribe({ subject: '>', durable: 'd', handler: hanging.handler });
    await expect(bus.publish(message('e1'))).rejects.toMatchObject({
      reason: 'BUS_DELIVERY_FAILED',
      cause: expect.objectContaining({ kind: 'deadline_exceeded', metadata: { limit_ms: '2' } }),
    });
  });

  it('receive a frozen message', async () => {
    const { bus } = open({ onError: noError });
    const kept = keeper();
    await bus.subscribe({ subject: '>', durable: 'd', handler: kept.handler });
    await bus.publish(message('e1'));
    expect(Object.isFrozen(kept.kept[0])).toBe(true);
    expect(Object.isFrozen(kept.kept[0]?.headers)).toBe(true);
  });

  it('run outside the async context of the publisher (SYS-1)', async () => {
    const { bus } = open();
    const span = new AsyncLocalStorage<string>();
    const seen: unknown[] = [];
    const look = async (): Promise<void> => {
      seen.push(span.getStore());
    };
    await span.run('consumer', () => bus.subscribe({ subject: '>', durable: 'd', handler: look }));
    const live = bus.subscribeLive({ subject: '>', handler: look });
    await span.run('publisher', () => bus.publish(message('e1')));
    await live.unsubscribe();
    expect(seen.sort()).toEqual(['consumer', undefined]);
  });

  it('require a valid name and subject', async () => {
    const { bus } = open();
    const { handler } = keeper();
    await expect(bus.subscribe({ subject: 'a..b', durable: 'd', handler })).rejects.toMatchObject({
      reason: 'INVALID_SUBJECT',
    });
    await expect(bus.subscribe({ subject: 'a', durable: 'a.b', handler })).rejects.toMatchObject({
      metadata: { field: 'durable' },
    });
    await expect(bus.publish(message('e1', 'a.*'))).rejects.toMatchObject({
      reason: 'INVALID_SUBJECT',
    });
  });
});

describe('unsubscribing from the in-process bus', () => {
  it('waits for a whole batch (HK-2)', async () => {
    const { bus } = open();
    const slow = waiter();
    let isUnsubscribed = false;
    const late: string[] = [];
    const subscription = await bus.subscribe({
      subject: '>',
      durable: 'd',
      handler: async (got) => {
        if (isUnsubscribed) late.push(got.eventId);
        await slow.handler();
      },
    });
    const publishing = bus.publishAll?.(['e1', 'e2', 'e3'].map((id) => message(id)));
    await slow.begun;
    const unsubscribing = subscription.unsubscribe().then(() => {
      isUnsubscribed = true;
    });
    slow.go();
    await Promise.all([publishing, unsubscribing]);
    expect(late).toEqual([]);
  });
});

describe('closing the in-process bus', () => {
  it('waits for deliveries in flight and accepts no message', async () => {
    const { bus } = open();
    const slow = waiter();
    await bus.subscribe({ subject: '>', durable: 'd', handler: slow.handler });
    const publishing = bus.publish(message('e1'));
    await slow.begun;
    let closed = false;
    const closing = bus.close().then(() => {
      closed = true;
    });
    await expect(bus.publish(message('e2'))).rejects.toMatchObject({ reason: 'BUS_CLOSED' });
    expect(closed).toBe(false);
    slow.go();
    await publishing;
    await closing;
    bus.publishLive(message('e3'));
    expect(() => bus.subscribeLive({ subject: '>', handler: slow.handler })).toThrow(
      expect.objectContaining({ reason: 'BUS_CLOSED' }),
    );
  });
});
