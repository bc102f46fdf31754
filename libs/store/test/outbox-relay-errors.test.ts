import { ManualClock } from '@writ/kernel';
import { describe, expect, it, vi } from 'vitest';
import { createOutboxRelay, type RelayFailure, type Store } from '../src/index.ts';
import type { LedgerDatabase } from './ledger.ts';
import { openLedger } from './open-ledger.ts';
import { append, message, relayTo } from './outbox-fixture.ts';

describe('the outbox relay after an error', () => {
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
});
