import { AsyncLocalStorage } from 'node:async_hooks';
import { ManualClock } from '@writ/kernel';
import { describe, expect, it } from 'vitest';
import { appendOutbox, createOutboxRelay, type OutboxMessage, type Store } from '../src/index.ts';
import type { LedgerDatabase } from './ledger.ts';
import { openLedger, openLedgerAt, PLACES } from './open-ledger.ts';
import { AT, append, message, outboxRows, relayTo } from './outbox-fixture.ts';

describe('the outbox relay', () => {
  it('publishes nothing without subscribers and rejects a flush (HK-2)', async () => {
    const ledger = await openLedger();
    const { store } = ledger;
    const seen: (string | boolean)[] = [];
    let hasSubscribers = false;
    const relay = createOutboxRelay({
      store,
      publish: async ({ eventId }) => void seen.push(eventId),
      hasSubscribers: () => hasSubscribers,
      onSubscribersChange: (now) => seen.push(now),
      onError: () => expect.unreachable(),
      clock: new ManualClock(AT),
      pollMs: 1,
    });
    // The outbox is empty, so no subscriber is needed.
    await relay.flush();
    expect(seen).toEqual([]);
    await append(store, 'a', 'b');
    for (let times = 0; times < 3; times += 1) {
      await expect(relay.flush()).rejects.toMatchObject({ reason: 'OUTBOX_NO_SUBSCRIBER' });
    }
    expect(seen).toEqual([false]);
    relay.start();
    hasSubscribers = true;
    await expect.poll(() => seen, { interval: 1 }).toEqual([false, true, 'a', 'b']);
    await relay.stop();
  });

  it('starts with the messages of a previous process and publishes when woken (HK-2)', async () => {
    const ledger = await openLedger();
    const { store } = ledger;
    await append(store, 'left');
    const arrivals: PromiseWithResolvers<string>[] = [
      Promise.withResolvers(),
      Promise.withResolvers(),
    ];
    const relay = createOutboxRelay({
      store,
      publish: async ({ eventId }) => arrivals.shift()?.resolve(eventId),
      onError: () => expect.unreachable(),
      clock: new ManualClock(),
      pollMs: 60_000,
    });
    const [left, nudged] = arrivals;
    relay.start();
    expect(await left?.promise).toBe('left');
    await append(store, 'nudged');
    relay.wake();
    expect(await nudged?.promise).toBe('nudged');
    await relay.stop();
  });

  it('publishes the messages of a flush interval together, and at once when flushed (HK-1, HK-2)', async () => {
    const ledger = await openLedger();
    const { store } = ledger;
    const together: string[][] = [];
    const publishAll = async (messages: readonly OutboxMessage[]) => {
      together.push(messages.map(({ eventId }) => eventId));
    };
    const relayWith = (flushIntervalMs: number) =>
      createOutboxRelay({
        store,
        publish: async ({ eventId }) => void together.push([eventId]),
        publishAll,
        onError: () => expect.unreachable(),
        clock: new ManualClock(),
        flushIntervalMs,
        pollMs: 60_000,
      });
    const relay = relayWith(200);
    relay.start();
    await relay.flush();
    for (const id of ['a', 'b', 'c']) {
      await append(store, id);
      relay.wake();
    }
    expect(together).toEqual([]);
    await expect.poll(() => together, { interval: 5 }).toEqual([['a', 'b', 'c']]);
    await relay.stop();
    const patient = relayWith(60_000);
    patient.start();
    await patient.flush();
    await append(store, 'd');
    patient.wake();
    await append(store, 'e');
    patient.flushSoon();
    await expect.poll(() => together.at(-1), { interval: 5 }).toEqual(['d', 'e']);
    await append(store, 'f');
    patient.wake();
    await patient.flush();
    expect(together.at(-1)).toEqual(['f']);
    await append(store, 'g');
    patient.wake();
    // Does not wait for the end of the flush interval.
    await patient.stop();
    const rows = await outboxRows(store);
    expect(rows.flatMap((row) => (row.published_at === null ? [row.event_id] : []))).toEqual(['g']);
  });

  it('publishes a rejected batch one by one in order and names the failing message (HK-1)', async () => {
    const ledger = await openLedger();
    const { store } = ledger;
    const published: string[] = [];
    const failures: (string | undefined)[] = [];
    const relay = createOutboxRelay({
      store,
      publish: async ({ eventId }) => {
        if (eventId === 'b' && failures.length === 0) throw new Error('no');
        published.push(eventId);
      },
      publishAll: () => Promise.reject(new Error('not together')),
      onError: (_error, { eventId }) => failures.push(eventId),
      clock: new ManualClock(),
      retryBaseMs: 1,
    });
    await append(store, 'a', 'b', 'c');
    await relay.flush();
    expect(published).toEqual(['a', 'b', 'c']);
    expect(failures).toEqual(['b']);
    await relay.stop();
  });

  it('finds messages by polling without a wake-up', async () => {
    const ledger = await openLedger();
    const { store } = ledger;
    const arrival = Promise.withResolvers<string>();
    const relay = createOutboxRelay({
      store,
      publish: async ({ eventId }) => arrival.resolve(eventId),
      onError: () => expect.unreachable(),
      clock: new ManualClock(),
      pollMs: 2,
    });
    relay.start();
    await relay.flush();
    await append(store, 'silent');
    expect(await arrival.promise).toBe('silent');
    await relay.stop();
  });

  it('stops after the current message and leaves the rest to the next relay', async () => {
    const ledger = await openLedger();
    const { store } = ledger;
    await append(store, 'a', 'b');
    const inFlight = Promise.withResolvers<void>();
    const finish = Promise.withResolvers<void>();
    const relay = createOutboxRelay({
      store,
      publish: async () => {
        inFlight.resolve();
        await finish.promise;
      },
      onError: () => expect.unreachable(),
      clock: new ManualClock(),
    });
    relay.start();
    await inFlight.promise;
    const stopping = relay.stop();
    finish.resolve();
    await stopping;
    await expect(relay.flush()).rejects.toMatchObject({ reason: 'RELAY_STOPPED' });
    relay.start();
    const next = relayTo(store);
    await next.relay.flush();
    expect(next.ids()).toEqual(['b']);
  });

  it('deletes published messages after the retention time, and no others', async () => {
    const ledger = await openLedger();
    const { store } = ledger;
    let hasSubscribers = true;
    const options = { hasSubscribers: () => hasSubscribers };
    const { relay, clock } = relayTo(store, () => false, options);
    await append(store, 'a', 'b');
    await relay.flush();
    clock.advance(3_600_000);
    await relay.flush();
    expect(await outboxRows(store)).toHaveLength(2);
    await append(store, 'c');
    await relay.flush();
    await append(store, 'unpublished');
    hasSubscribers = false;
    clock.advance(60_001);
    await expect(relay.flush()).rejects.toMatchObject({ reason: 'OUTBOX_NO_SUBSCRIBER' });
    await relay.stop();
    const remaining = (await outboxRows(store)).map(({ event_id }) => event_id);
    expect(remaining).toEqual(['c', 'unpublished']);
  });

  it('deletes nothing while the clock is not confirmed (BD-3)', async () => {
    const ledger = await openLedger();
    const { store } = ledger;
    let isClockConfirmed = false;
    const options = { isClockConfirmed: () => isClockConfirmed };
    const { relay, clock } = relayTo(store, () => false, options);
    await append(store, 'a');
    await relay.flush();
    clock.advance(3_600_000 + 60_001);
    await relay.flush();
    await relay.stop();
    expect(await outboxRows(store)).toHaveLength(1);
    isClockConfirmed = true;
    const next = relayTo(store, () => false, options);
    next.clock.advance(3_600_000 + 60_001);
    await next.relay.flush();
    await next.relay.stop();
    expect(await outboxRows(store)).toEqual([]);
  });

  it('runs outside the async context and the transaction of the code that wakes it', async () => {
    const ledger = await openLedger();
    const { store } = ledger;
    const span = new AsyncLocalStorage<string>();
    const seen: unknown[] = [];
    const relay = createOutboxRelay({
      store,
      publish: async () => {
        seen.push(span.getStore());
      },
      onError: () => expect.unreachable(),
      clock: new ManualClock(),
    });
    let flushed: Promise<void> | undefined;
    await span.run('request', () =>
      store.transaction(async (trx) => {
        await appendOutbox(trx, message('a'), AT);
        relay.start();
        flushed = relay.flush();
      }),
    );
    await flushed;
    await relay.flush();
    expect(seen).toEqual([undefined]);
    await relay.stop();
  });
});

describe.runIf(PLACES.includes('PostgreSQL'))('the relays of several replicas', () => {
  it('publish each message once and in order, and fail over to the next (HK-2)', async () => {
    const { store, location } = await openLedger('PostgreSQL');
    const { store: other } = await openLedgerAt(location);
    const published: string[] = [];
    const relayOf = (from: Store<LedgerDatabase>, name: string) =>
      createOutboxRelay({
        store: from,
        publish: async ({ eventId }) => {
          published.push(`${eventId} by ${name}`);
        },
        onError: () => expect.unreachable(),
        clock: new ManualClock(AT),
        batch: 3,
        pollMs: 5,
      });
    const [first, second] = [relayOf(store, 'first'), relayOf(other, 'second')];
    await first.flush();
    second.start();
    const ids = Array.from({ length: 10 }, (_, n) => `e${n}`);
    await Promise.all([append(store, ...ids.slice(0, 5)), append(other, ...ids.slice(5))]);
    const order = (await outboxRows(store)).map(({ event_id }) => event_id);
    await Promise.all([first.flush(), second.flush()]);
    expect(published).toEqual(order.map((id) => `${id} by first`));
    await first.stop();
    await append(store, 'left');
    await second.flush();
    expect(published.at(-1)).toBe('left by second');
    await second.stop();
  });
});
