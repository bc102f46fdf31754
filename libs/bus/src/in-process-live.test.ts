import { describe, expect, it, vi } from 'vitest';
import { keeper } from '../test/handlers.ts';
import { message, open } from '../test/in-process.ts';

describe('live subscribers of the in-process bus', () => {
  it('receive live and durable messages without blocking the publisher', async () => {
    const { bus } = open();
    const got = Promise.withResolvers<void>();
    const seen: string[] = [];
    bus.subscribeLive({
      subject: 'a.>',
      handler: ({ eventId }) => {
        seen.push(eventId);
        if (seen.length === 2) got.resolve();
      },
    });
    bus.publishLive(message('live'));
    bus.publishLive(message('other', 'b'));
    expect(seen).toEqual([]);
    await bus.publish(message('durable'));
    await got.promise;
    expect(seen).toEqual(['live', 'durable']);
  });

  it('lose the oldest messages when slow, and receive the number of missed messages', async () => {
    const { bus } = open();
    const first = Promise.withResolvers<void>();
    const go = Promise.withResolvers<void>();
    const done = Promise.withResolvers<void>();
    const seen: [string, number][] = [];
    bus.subscribeLive({
      subject: '>',
      capacity: 2,
      handler: async ({ eventId }, missed) => {
        seen.push([eventId, missed]);
        first.resolve();
        await go.promise;
        if (eventId === '6') done.resolve();
      },
    });
    bus.publishLive(message('1'));
    await first.promise;
    for (const id of ['2', '3', '4', '5', '6']) bus.publishLive(message(id));
    go.resolve();
    await done.promise;
    expect(seen).toEqual([
      ['1', 0],
      ['5', 3],
      ['6', 0],
    ]);
  });

  it('continue after an error, which is reported', async () => {
    const { bus, failures } = open();
    const done = Promise.withResolvers<void>();
    bus.subscribeLive({
      subject: '>',
      handler: ({ eventId }) => {
        if (eventId === 'bad') throw new Error('no');
        done.resolve();
      },
    });
    bus.publishLive(message('bad'));
    bus.publishLive(message('good'));
    await done.promise;
    expect(failures).toEqual([{ eventId: 'bad', subject: 'a.b' }]);
  });

  it('receive every message that matches their subject pattern', async () => {
    const { bus } = open({ onError: () => expect.unreachable() });
    const patterns = ['>', '*.b', 'a.>', 'a.*', 'a.b', 'a.*.c', 'a.b.c', 'b', '*'];
    const seen: string[] = [];
    const subscriptions = patterns.map((subject) =>
      bus.subscribeLive({
        subject,
        handler: ({ eventId }) => void seen.push(`${subject} ${eventId}`),
      }),
    );
    bus.publishLive(message('ab', 'a.b'));
    bus.publishLive(message('abc', 'a.b.c'));
    await bus.publish(message('b', 'b'));
    const expected = [
      ...['> ab', '*.b ab', 'a.> ab', 'a.* ab', 'a.b ab'],
      ...['> abc', 'a.> abc', 'a.*.c abc', 'a.b.c abc'],
      ...['> b', 'b b', '* b'],
    ].sort();
    await vi.waitFor(() => expect([...seen].sort()).toEqual(expected));
    await Promise.all(subscriptions.map((subscription) => subscription.unsubscribe()));
    const delivered = Promise.withResolvers<void>();
    bus.subscribeLive({ subject: 'a.b', handler: () => delivered.resolve() });
    bus.publishLive(message('late', 'a.b'));
    await delivered.promise;
    expect(seen).toHaveLength(expected.length);
  });

  it('receive nothing after unsubscribing', async () => {
    const { bus } = open({ onError: () => expect.unreachable() });
    const kept = keeper();
    const subscription = bus.subscribeLive({ subject: '>', handler: kept.handler });
    bus.publishLive(message('dropped with the queue'));
    await subscription.unsubscribe();
    bus.publishLive(message('late'));
    await bus.publish(message('later'));
    expect(kept.ids()).toEqual([]);
  });
});
