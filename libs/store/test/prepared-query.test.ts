import type { Kysely } from 'kysely';
import { describe, expect, it } from 'vitest';
import { pickColumns, prepareQuery } from '../src/index.ts';
import { entry, type LedgerDatabase } from './ledger.ts';
import { entryIds, openLedger, PLACES } from './open-ledger.ts';

type Reader = Kysely<LedgerDatabase>;
type Entry = LedgerDatabase['entry'];

const COLUMNS = ['id', 'amount', 'estimated', 'at', 'note'] as const;
const insertEntry = prepareQuery((db: Reader, row: Entry) =>
  db.insertInto('entry').values(pickColumns(row, COLUMNS)),
);
const addToEntry = prepareQuery((db: Reader, change: { id: string; by: bigint }) =>
  db
    .updateTable('entry')
    .set((column) => ({ amount: column('amount', '+', change.by) }))
    .where('id', '=', change.id),
);
const someEntries = prepareQuery((db: Reader, { a, b }: { a: string; b: string }) =>
  db.selectFrom('entry').selectAll().where('id', 'in', [a, b]).where('estimated', '=', false),
);

describe.each(PLACES)('a prepared query on a store in %s', (place) => {
  it('runs with the given values exactly (EM-4)', async () => {
    const { store } = await openLedger(place);
    await store.transaction(async (trx) => {
      await insertEntry(trx, { ...entry('a', 2n ** 62n), note: new Uint8Array([1]) });
      await insertEntry(trx, entry('b', -5n));
      await insertEntry(trx, { ...entry('c'), estimated: true });
      const { numAffectedRows } = await addToEntry(trx, { id: 'b', by: 7n });
      expect(numAffectedRows).toBe(1n);
    });
    const { rows } = await someEntries(store.db, { a: 'a', b: 'b' });
    expect(rows).toEqual([{ ...entry('a', 2n ** 62n), note: new Uint8Array([1]) }, entry('b', 2n)]);
    expect((await someEntries(store.db, { a: 'c', b: 'd' })).rows).toEqual([]);
  });

  it('is rolled back with its transaction', async () => {
    const ledger = await openLedger(place);
    const work = ledger.store.transaction(async (trx) => {
      await insertEntry(trx, entry('a'));
      throw new Error('rolled back by the test');
    });
    await expect(work).rejects.toThrow('rolled back by the test');
    expect(await entryIds(ledger.store)).toEqual([]);
  });
});

it('rejects a prepared query whose SQL depends on a value, and a missing value', async () => {
  const { store } = await openLedger();
  const byValue = prepareQuery((db: Reader, { amount }: { amount: number }) =>
    db
      .selectFrom('entry')
      .select('id')
      .limit(amount + 1),
  );
  await expect(async () => byValue(store.db, { amount: 1 })).rejects.toMatchObject({
    reason: 'STORE_INVALID_PREPARED_QUERY',
  });
  await expect(someEntries(store.db, { a: 'a' } as { a: string; b: string })).rejects.toMatchObject(
    {
      reason: 'STORE_INVALID_PARAMETER',
    },
  );
});
