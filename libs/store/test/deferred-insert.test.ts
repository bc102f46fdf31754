import { describe, expect, it } from 'vitest';
import { DeferredInsert, type Store } from '../src/index.ts';
import type { LedgerDatabase } from './ledger.ts';
import { openLedger, PLACES } from './open-ledger.ts';

const AT = new Date('2026-01-01T00:00:00Z');

const messages = new DeferredInsert<LedgerDatabase, Record<string, unknown>>({
  table: 'outbox',
  columns: ['event_id', 'subject', 'payload', 'headers', 'created_at'],
  unlessExists: 'event_id',
});

function row(id: string) {
  const payload = new TextEncoder().encode(id);
  return { event_id: id, subject: 's', payload, headers: '{}', created_at: AT };
}

const idsIn = async (store: Store<LedgerDatabase>) => {
  const rows = await store.db.selectFrom('outbox').select('event_id').orderBy('position').execute();
  return rows.map(({ event_id }) => event_id);
};

describe.each(PLACES)('deferred rows in %s', (place) => {
  it.each([1, 2, 31, 32, 33, 100])('are all inserted in order: %i of them', async (count) => {
    const { store } = await openLedger(place);
    const ids = Array.from({ length: count }, (_, n) => `e${n}`);
    await store.transaction(async (trx) => {
      for (const id of ids) messages.add(trx, row(id));
    });
    expect(await idsIn(store)).toEqual(ids);
    expect(store.commits).toBe(1);
  });

  it('are rolled back with their transaction (HK-2)', async () => {
    const { store } = await openLedger(place);
    const failed = store.transaction(async (trx) => {
      messages.add(trx, row('lost'));
      throw new Error('no');
    });
    await expect(failed).rejects.toThrow('no');
    await store.transaction(async (trx) => messages.add(trx, row('kept')));
    expect(await idsIn(store)).toEqual(['kept']);
  });

  it('skip rows that exist before or within the transaction (HK-1)', async () => {
    const { store } = await openLedger(place);
    await store.transaction(async (trx) => messages.add(trx, row('a')));
    await store.transaction(async (trx) => {
      for (const id of ['a', 'b', 'b', 'c']) messages.add(trx, row(id));
    });
    expect(await idsIn(store)).toEqual(['a', 'b', 'c']);
  });

  it('fail their transaction if they cannot be inserted', async () => {
    const { store } = await openLedger(place);
    const failed = store.transaction(async (trx) =>
      messages.add(trx, { ...row('a'), subject: null }),
    );
    await expect(failed).rejects.toThrow();
    expect(await idsIn(store)).toEqual([]);
  });
});
