import { AsyncLocalStorage } from 'node:async_hooks';
import { ManualClock } from '@writ/kernel';
import { describe, expect, it, vi } from 'vitest';
import {
  appendOutbox,
  createOutboxRelay,
  type OutboxMessage,
  type OutboxRelayOptions,
  type RelayFailure,
  type Store,
} from '../src/index.ts';
import { entry, type LedgerDatabase } from './ledger.ts';
import { openLedger, openLedgerAt, PLACES } from './open-ledger.ts';

const AT = new Date('2026-01-01T00:00:00Z');

function message(eventId: string): Required<OutboxMessage> {
  return {
    eventId,
    subject: `writ.hooks.v1.t.r.a.${eventId}`,
    payload: new TextEncoder().encode(eventId),
    headers: { traceparent: `00-${eventId}` },
  };
}

async function append(store: Store<LedgerDatabase>, ...ids: string[]): Promise<void> {
  await store.transaction(async (trx) => {
    for (const id of ids) await appendOutbox(trx, message(id), AT);
  });
}

/** A bus that accepts everything except the given messages, and its relay. */
function relayTo(
  store: Store<LedgerDatabase>,
  refuse: (eventId: string) => boolean = () => false,
  options: Partial<Pick<OutboxRelayOptions<LedgerDatabase>, 'markIntervalMs'>> = {},
) {
  const taken: Required<OutboxMessage>[] = [];
  const failures: RelayFailure[] = [];
  const clock = new ManualClock(AT);
  const relay = createOutboxRelay({
    store,
    publish: async (published) => {
      if (refuse(published.eventId)) throw new Error('the bus is down');
      taken.push(published);
    },
    onError: (_error, failure) => failures.push(failure),
    clock,
    batch: 3,
    pollMs: 60_000,
    retryBaseMs: 1,
    retryMaxMs: 4,
    ...options,
  });
  const ids = () => taken.map(({ eventId }) => eventId);
  return { relay, taken, ids, failures, clock };
}

const outboxRows = async (store: Store<LedgerDatabase>) =>
  await store.db.selectFrom('outbox').selectAll().orderBy('position').execute();

describe.each(PLACES)('the outbox in %s', (place) => {
  it('has a message if and only if the fact is stored (HK-2)', async () => {
    const ledger = await openLedger(place);
    const { store } = ledger;
    const record = (id: string, fail: boolean) =>
      store.transaction(async (trx) => {
        await trx.insertInto('entry').values(entry(id)).execute();
        await appendOutbox(trx, message(id), AT);
        if (fail) throw new Error('undone');
      });
    await Promise.allSettled([record('a', false), record('b', true), record('c', false)]);
    const rows = await outboxRows(store);
    expect(rows.map(({ event_id }) => event_id)).toEqual(['a', 'c']);
    expect(rows[0]).toMatchObject({ created_at: AT, published_at: null });
  });

  it('keeps all messages and reports a large backlog, each doubling and its end (HK-2)', async () => {
    const { store } = await openLedger(place);
    const clock = new ManualClock(AT);
    const reported: (number | undefined)[] = [];
    const taken: string[] = [];
    let hasSubscribers = false;
    const relay = createOutboxRelay({
      store,
      publish: async ({ eventId }) => void taken.push(eventId),
      hasSubscribers: () => hasSubscribers,
      onError: () => expect.unreachable(),
      clock,
      backlog: { warnAt: 4, onBacklog: (backlog) => void reported.push(backlog?.count) },
    });
    const aMinuteLater = async (): Promise<void> => {
      clock.advance(60_000);
      await relay.flush().catch(() => undefined);
    };
    await append(store, 'a', 'b', 'c');
    await aMinuteLater();
    expect(reported).toEqual([]);
    await append(store, 'd');
    await aMinuteLater();
    await aMinuteLater();
    await append(store, 'e', 'f', 'g');
    await aMinuteLater();
    expect(reported).toEqual([4]);
    await append(store, 'h');
    await relay.flush().catch(() => undefined);
    expect(reported).toEqual([4]);
    await aMinuteLater();
    expect(reported).toEqual([4, 8]);
    hasSubscribers = true;
    await aMinuteLater();
    await relay.stop();
    expect(reported).toEqual([4, 8, undefined]);
    expect(taken).toEqual(['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h']);
  });

  it('treats a repeat as the same event, published or not (HK-1)', async () => {
    const ledger = await openLedger(place);
    const { store } = ledger;
    const { relay, ids } = relayTo(store);
    await append(store, 'a', 'a');
    await relay.flush();
    await append(store, 'a', 'b');
    await relay.flush();
    expect(ids()).toEqual(['a', 'b']);
  });

  it('publishes messages unchanged and in order, and marks them (HK-1, HK-2)', async () => {
    const ledger = await openLedger(place);
    const { store } = ledger;
    const { relay, taken } = relayTo(store);
    const all = Array.from({ length: 8 }, (_, n) => `e${n}`);
    await append(store, ...all);
    await relay.flush();
    expect(taken).toEqual(all.map(message));
    expect((await outboxRows(store)).every(({ published_at }) => published_at !== null)).toBe(true);
    expect(store.backgroundCommits).toBe(3);
    expect(store.commits).toBe(1);
  });

  it('marks accepted messages together without publishing any twice (HK-1, CO-1)', async () => {
    const { store } = await openLedger(place);
    const { relay, ids } = relayTo(store, undefined, { markIntervalMs: 60_000 });
    relay.start();
    for (const id of ['a', 'b', 'c', 'd', 'e']) {
      await append(store, id);
      relay.wake();
      await expect.poll(() => ids().at(-1)).toBe(id);
    }
    expect(store.backgroundCommits).toBe(0);
    expect((await outboxRows(store)).every(({ published_at }) => published_at === null)).toBe(true);
    await relay.stop();
    expect(store.backgroundCommits).toBe(1);
    expect((await outboxRows(store)).every(({ published_at }) => published_at !== null)).toBe(true);
    expect(ids()).toEqual(['a', 'b', 'c', 'd', 'e']);
  });

  it('writes marks when their interval is over, without a wake-up (CO-1)', async () => {
    const { store } = await openLedger(place);
    await append(store, 'a', 'b');
    const { relay, ids } = relayTo(store, undefined, { markIntervalMs: 20 });
    relay.start();
    await expect.poll(() => store.backgroundCommits).toBe(1);
    expect((await outboxRows(store)).every(({ published_at }) => published_at !== null)).toBe(true);
    expect(ids()).toEqual(['a', 'b']);
    await relay.stop();
    expect(store.backgroundCommits).toBe(1);
  });

  it('accepts a message without headers', async () => {
    const ledger = await openLedger(place);
    const { store } = ledger;
    const { relay, taken } = relayTo(store);
    const { headers: _, ...bare } = message('a');
    await store.transaction(async (trx) => appendOutbox(trx, bare, AT));
    await relay.flush();
    expect(taken).toEqual([{ ...bare, headers: {} }]);
  });
});

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
    const taken: string[] = [];
    const failures: (string | undefined)[] = [];
    const relay = createOutboxRelay({
      store,
      publish: async ({ eventId }) => {
        if (eventId === 'b' && failures.length === 0) throw new Error('no');
        taken.push(eventId);
      },
      publishAll: () => Promise.reject(new Error('not together')),
      onError: (_error, { eventId }) => failures.push(eventId),
      clock: new ManualClock(),
      retryBaseMs: 1,
    });
    await append(store, 'a', 'b', 'c');
    await relay.flush();
    expect(taken).toEqual(['a', 'b', 'c']);
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

  it('loses nothing and keeps the order while the bus is down (HK-2)', async () => {
    const ledger = await openLedger();
    const { store } = ledger;
    let refusals = 0;
    const { relay, ids, failures } = relayTo(store, (id) => id === 'c' && ++refusals <= 5);
    await append(store, 'a', 'b', 'c', 'd');
    await relay.flush();
    expect(ids()).toEqual(['a', 'b', 'c', 'd']);
    expect(failures.map(({ attempt }) => attempt)).toEqual([1, 2, 3, 4, 5]);
    for (const { eventId, attempt, retryInMs } of failures) {
      expect(eventId).toBe('c');
      expect(retryInMs).toBeLessThanOrEqual(Math.min(4, 2 ** (attempt - 1)));
    }
  });

  it('counts consecutive failures and resets the count after a success', async () => {
    const ledger = await openLedger();
    const { store } = ledger;
    const refused = new Set<string>();
    const refuseOnce = (id: string) => refused.size < refused.add(id).size;
    const { relay, ids, failures } = relayTo(store, refuseOnce);
    await append(store, 'a', 'b', 'c');
    await relay.flush();
    expect(ids()).toEqual(['a', 'b', 'c']);
    expect(failures.map(({ eventId, attempt }) => [eventId, attempt])).toEqual([
      ['a', 1],
      ['b', 1],
      ['c', 1],
    ]);
  });

  it('completes its back-off even if it is woken', async () => {
    const ledger = await openLedger();
    const { store } = ledger;
    const full = vi.spyOn(Math, 'random').mockReturnValue(1);
    const failed = Promise.withResolvers<RelayFailure>();
    let attempts = 0;
    const relay = createOutboxRelay({
      store,
      publish: () => Promise.reject(new Error(`attempt ${++attempts}`)),
      onError: (_error, failure) => failed.resolve(failure),
      clock: new ManualClock(),
      retryBaseMs: 60_000,
      retryMaxMs: 60_000,
    });
    relay.start();
    await append(store, 'a');
    relay.wake();
    expect(await failed.promise).toEqual({ eventId: 'a', attempt: 1, retryInMs: 60_000 });
    for (const id of ['b', 'c', 'd']) {
      await append(store, id);
      relay.wake();
    }
    await relay.stop();
    expect(attempts).toBe(1);
    full.mockRestore();
  });

  it('publishes again under the same event id after a crash before the mark (HK-1)', async () => {
    const ledger = await openLedger();
    const { store } = ledger;
    await append(store, 'a', 'b');
    const dying: Store<LedgerDatabase> = {
      dialect: 'sqlite',
      db: store.db,
      commits: 0,
      backgroundCommits: 0,
      checkAvailable: () => Promise.resolve(),
      transaction: () => Promise.reject(new Error('killed')),
      close: () => Promise.resolve(),
    };
    const before = relayTo(dying);
    const flushing = before.relay.flush();
    await expect.poll(() => before.failures.length).toBeGreaterThan(0);
    const stopping = before.relay.stop();
    await expect(flushing).rejects.toMatchObject({ reason: 'RELAY_STOPPED' });
    await stopping;
    expect(before.ids().slice(0, 2)).toEqual(['a', 'b']);
    const after = relayTo(store);
    await after.relay.flush();
    expect(after.taken).toEqual([message('a'), message('b')]);
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
    const { relay, clock } = relayTo(store, (id) => id === 'stuck');
    await append(store, 'a', 'b');
    await relay.flush();
    clock.advance(3_600_000);
    await relay.flush();
    expect(await outboxRows(store)).toHaveLength(2);
    clock.advance(60_001);
    await append(store, 'c');
    await relay.flush();
    await relay.stop();
    expect((await outboxRows(store)).map(({ event_id }) => event_id)).toEqual(['c']);
  });

  it('runs outside of the context of its waker, including transactions', async () => {
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
    const taken: string[] = [];
    const relayOf = (from: Store<LedgerDatabase>, name: string) =>
      createOutboxRelay({
        store: from,
        publish: async ({ eventId }) => {
          taken.push(`${eventId} by ${name}`);
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
    expect(taken).toEqual(order.map((id) => `${id} by first`));
    await first.stop();
    await append(store, 'left');
    await second.flush();
    expect(taken.at(-1)).toBe('left by second');
    await second.stop();
  });
});
