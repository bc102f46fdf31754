import type { Kysely } from 'kysely';
import { describe, expect, it } from 'vitest';
import { DeferredInsert, isUniqueViolation, pickColumns, prepareQuery } from '../src/index.ts';
import { entry, insertAhead, type LedgerDatabase } from './ledger.ts';
import { entryIds, openLedger, PLACES } from './open-ledger.ts';

type Db = Kysely<LedgerDatabase>;
type Entry = LedgerDatabase['entry'];

const COLUMNS = ['id', 'amount', 'estimated', 'at', 'note'] as const;
const insertEntry = prepareQuery((db: Db, row: Entry) =>
  db.insertInto('entry').values(pickColumns(row, COLUMNS)),
);
const addToEntry = prepareQuery((db: Db, change: { id: string; by: bigint }) =>
  db
    .updateTable('entry')
    .set((column) => ({ amount: column('amount', '+', change.by) }))
    .where('id', '=', change.id),
);
const quoted = prepareQuery((db: Db, { b }: { b: string }) =>
  db.selectFrom('entry').select('id').where('id', 'in', ["it's", b]).where('id', '!=', "'"),
);
const deferredEntries = new DeferredInsert<LedgerDatabase, Entry>({
  table: 'entry',
  columns: COLUMNS,
});
const someEntries = prepareQuery((db: Db, { a, b }: { a: string; b: string }) =>
  db.selectFrom('entry').selectAll().where('id', 'in', [a, b]).where('estimated', '=', false),
);
const INVALID_PARAMETER = { reason: 'STORE_INVALID_PARAMETER' };

describe.each(PLACES)('a prepared query on a store in %s', (place) => {
  it('passes the given values exactly (EM-4)', async () => {
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

  it('compares string constants exactly, including quotes', async () => {
    const { store } = await openLedger(place);
    await store.transaction(async (trx) => {
      for (const id of ["it's", "it''s", 'b', "'"]) await insertEntry(trx, entry(id));
    });
    const { rows } = await quoted(store.db, { b: 'b' });
    expect(rows.map(({ id }) => id).sort()).toEqual(['b', "it's"]);
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

describe.each(PLACES)('a statement of prepareWrite on a store in %s', (place) => {
  it('is visible to later queries of its transaction and committed with it', async () => {
    const { store } = await openLedger(place);
    await store.transaction(async (trx) => {
      await insertAhead(trx, entry('a', 2n ** 62n));
      const { numAffectedRows } = await addToEntry(trx, { id: 'a', by: -1n });
      expect(numAffectedRows).toBe(1n);
      await insertAhead(trx, entry('b'));
    });
    expect(await entryIds(store)).toEqual(['a', 'b']);
    expect(store.commits).toBe(1);
  });

  it('rolls back its transaction with the error of the write, even if the transaction continues', async () => {
    const { store } = await openLedger(place);
    await store.transaction((trx) => insertAhead(trx, entry('known')));
    const last = store.transaction(async (trx) => {
      await insertAhead(trx, entry('a'));
      await insertAhead(trx, entry('known'));
    });
    await expect(last).rejects.toSatisfy(isUniqueViolation);
    const continued = store.transaction(async (trx) => {
      await insertAhead(trx, entry('known'));
      await insertAhead(trx, entry('b'));
      await someEntries(trx, { a: 'a', b: 'b' });
    });
    await expect(continued).rejects.toSatisfy(isUniqueViolation);
    await expect(
      store.transaction(async (trx) => {
        await insertAhead(trx, entry('known'));
        throw new Error('rolled back by the test');
      }),
    ).rejects.toThrow(place === 'PostgreSQL' ? 'rolled back by the test' : /unique/i);
    expect(await entryIds(store)).toEqual(['known']);
  });

  it('rolls back its transaction if a value cannot be stored (CO-1)', async () => {
    const { store } = await openLedger(place);
    const invalid = entry('b', 2n ** 63n);
    const work = store.transaction(async (trx) => {
      await insertAhead(trx, entry('a'));
      await insertAhead(trx, invalid);
    });
    await expect(work).rejects.toMatchObject(INVALID_PARAMETER);
    const deferred = store.transaction(async (trx) => {
      await insertAhead(trx, entry('a'));
      deferredEntries.add(trx, invalid);
    });
    await expect(deferred).rejects.toMatchObject(INVALID_PARAMETER);
    expect(await entryIds(store)).toEqual([]);
    expect(store.commits).toBe(0);
  });

  it('is rejected after the end of its transaction', async () => {
    const { store } = await openLedger(place);
    const { ended } = await store.transaction(async (trx) => ({ ended: trx }));
    await expect(insertAhead(ended, entry('late'))).rejects.toMatchObject({
      reason: 'STORE_TRANSACTION_ENDED',
    });
    expect(await entryIds(store)).toEqual([]);
  });
});

it.runIf(PLACES.includes('PostgreSQL')).each([
  ['prepareWrite', insertAhead],
  ['prepareQuery', insertEntry],
])(
  'rolls back a PostgreSQL transaction that continues after a statement of %s rejects an invalid value (CO-1)',
  async (_kind, insert) => {
    const { store } = await openLedger('PostgreSQL');
    const work = store.transaction(async (trx) => {
      await insertAhead(trx, entry('a'));
      await expect(insert(trx, entry('b', 2n ** 63n))).rejects.toMatchObject(INVALID_PARAMETER);
      await insertAhead(trx, entry('c'));
    });
    const other = store.transaction((trx) => insertAhead(trx, entry('d')));
    await expect(work).rejects.toMatchObject(INVALID_PARAMETER);
    await other;
    expect(await entryIds(store)).toEqual(['d']);
  },
);

it('rejects a prepared query whose SQL depends on a value, and a missing value', async () => {
  const { store } = await openLedger();
  const byValue = prepareQuery((db: Db, { amount }: { amount: number }) =>
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
