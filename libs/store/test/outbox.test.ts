import { ManualClock } from '@writ/kernel';
import { describe, expect, it } from 'vitest';
import { appendOutbox, createOutboxRelay } from '../src/index.ts';
import { entry } from './ledger.ts';
import { openLedger, PLACES } from './open-ledger.ts';
import { AT, append, message, outboxRows, relayTo } from './outbox-fixture.ts';

describe.each(PLACES)('the outbox in %s', (place) => {
  it('contains a message if and only if its transaction is committed (HK-2)', async () => {
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

  it('keeps all messages and reports that the backlog is large, doubled or small again (HK-2, BD-3)', async () => {
    const { store } = await openLedger(place);
    const clock = new ManualClock(AT);
    const reported: (number | undefined)[] = [];
    const published: string[] = [];
    let hasSubscribers = false;
    const relay = createOutboxRelay({
      store,
      publish: async ({ eventId }) => void published.push(eventId),
      hasSubscribers: () => hasSubscribers,
      onError: () => expect.unreachable(),
      clock,
      backlog: { warnAt: 4, onBacklog: (backlog) => void reported.push(backlog?.count) },
    });
    const aMinuteLater = async (): Promise<void> => {
      clock.advance(60_000);
      // A correction of the wall clock does not affect the interval.
      clock.step(-90_000);
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
    expect(published).toEqual(['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h']);
  });

  it('ignores a second message with the same event id, before and after the first is published (HK-1)', async () => {
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
    const { relay, accepted } = relayTo(store);
    const all = Array.from({ length: 8 }, (_, n) => `e${n}`);
    await append(store, ...all);
    await relay.flush();
    expect(accepted).toEqual(all.map(message));
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
    const { relay, accepted } = relayTo(store);
    const { headers: _, ...bare } = message('a');
    await store.transaction(async (trx) => appendOutbox(trx, bare, AT));
    await relay.flush();
    expect(accepted).toEqual([{ ...bare, headers: {} }]);
  });
});
