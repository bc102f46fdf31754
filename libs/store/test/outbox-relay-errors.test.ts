import { ManualClock } from '@writ/kernel';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { createOutboxRelay, type RelayFailure, readBacklog, type Store } from '../src/index.ts';
import type { LedgerDatabase } from './ledger.ts';
import { openLedger, PLACES } from './open-ledger.ts';
import { append, message, relayTo } from './outbox-fixture.ts';

/** Returns the store with `transaction` replaced. */
function withTransactions(
  store: Store<LedgerDatabase>,
  transaction: Store<LedgerDatabase>['transaction'],
): Store<LedgerDatabase> {
  const { dialect, db, urgentDb } = store;
  return {
    dialect,
    db,
    urgentDb,
    commits: 0,
    backgroundCommits: 0,
    checkAvailable: () => Promise.resolve(),
    transaction,
    close: () => Promise.resolve(),
  };
}

/** `count` different event ids. */
const idsOf = (count: number) => Array.from({ length: count }, (_, n) => `m${n}`);

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

  it('publishes again with the same event id after a crash before the mark is written (HK-1)', async () => {
    const ledger = await openLedger();
    const { store } = ledger;
    await append(store, 'a', 'b');
    const before = relayTo(withTransactions(store, () => Promise.reject(new Error('killed'))));
    const flushing = before.relay.flush();
    await expect.poll(() => before.failures.length).toBeGreaterThan(0);
    const stopping = before.relay.stop();
    await expect(flushing).rejects.toMatchObject({ reason: 'RELAY_STOPPED' });
    await stopping;
    expect(before.ids().slice(0, 2)).toEqual(['a', 'b']);
    const after = relayTo(store);
    await after.relay.flush();
    expect(after.accepted).toEqual([message('a'), message('b')]);
  });
});

describe.each(PLACES)('the marks of published messages in %s', (place) => {
  it('are written in several statements if there are many (HK-2)', async () => {
    const { store } = await openLedger(place);
    // More than the parameters of one statement: 65,535 on PostgreSQL, 32,766 on SQLite, padded to a power of two.
    const sent = idsOf(33_000);
    for (let from = 0; from < sent.length; from += 3_000) {
      await append(store, ...sent.slice(from, from + 3_000));
    }
    const { relay, ids, failures } = relayTo(store, undefined, { batch: sent.length });
    onTestFinished(() => relay.stop());
    relay.start();
    await expect.poll(() => readBacklog(store.db)).toMatchObject({ count: 0 });
    expect(failures).toEqual([]);
    expect(ids()).toEqual(sent);
  });

  it('stop the relay from publishing while they cannot be written (HK-2)', async () => {
    const { store } = await openLedger(place);
    const sent = idsOf(3_000);
    await append(store, ...sent);
    let isFull = true;
    const failing = withTransactions(store, (work, options) =>
      isFull ? Promise.reject(new Error('disk full')) : store.transaction(work, options),
    );
    const { relay, ids, failures } = relayTo(failing, undefined, { batch: 500 });
    onTestFinished(() => relay.stop());
    relay.start();
    await expect.poll(() => failures.length).toBeGreaterThan(10);
    expect(ids().length).toBeLessThanOrEqual(1_500);
    expect(failures.map(({ eventId }) => eventId)).not.toContainEqual(expect.anything());
    isFull = false;
    await relay.flush();
    expect(ids()).toEqual(sent);
    expect(await readBacklog(store.db)).toMatchObject({ count: 0 });
  });
});
