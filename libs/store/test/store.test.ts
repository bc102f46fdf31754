import { AsyncLocalStorage } from 'node:async_hooks';
import { DatabaseSync } from 'node:sqlite';
import { setImmediate as turn } from 'node:timers/promises';
import { sql } from 'kysely';
import { describe, expect, it } from 'vitest';
import { int64, isUniqueViolation } from '../src/index.ts';
import { entry } from './ledger.ts';
import { entryIds, openLedger, openLedgerAt, PLACES } from './open-ledger.ts';
import { tempFolder } from './temp-folder.ts';

describe.each(PLACES)('a store in %s', (place) => {
  it('keeps money, flags, times and bytes exactly (EM-4)', async () => {
    const ledger = await openLedger(place);
    const { store } = ledger;
    const rows = [
      { ...entry('a', 2n ** 62n), estimated: true, note: new Uint8Array([1, 2]) },
      entry('b', -5n),
    ];
    await store.transaction((trx) => trx.insertInto('entry').values(rows).execute());
    const found = await store.db
      .selectFrom('entry')
      .selectAll()
      .where('at', '<=', new Date('2026-01-01T00:00:00Z'))
      .orderBy('id')
      .execute();
    expect(found).toEqual(rows);
    const { total } = await store.db
      .selectFrom('entry')
      .select(({ fn }) => fn.sum('amount').as('total'))
      .where('estimated', '=', false)
      .executeTakeFirstOrThrow();
    expect(int64(total)).toBe(-5n);
  });

  it('gives the result of the work, and undoes a work that throws', async () => {
    const ledger = await openLedger(place);
    const { store } = ledger;
    expect(await store.transaction(async () => 7)).toBe(7);
    const failing = store.transaction(async (trx) => {
      await trx.insertInto('entry').values(entry('a')).execute();
      throw new Error('changed my mind');
    });
    await expect(failing).rejects.toThrow('changed my mind');
    expect(await entryIds(store)).toEqual([]);
  });

  it('says when a row exists already', async () => {
    const ledger = await openLedger(place);
    const { store } = ledger;
    const insert = () =>
      store.transaction((trx) => trx.insertInto('entry').values(entry('a')).execute());
    await insert();
    const error: unknown = await insert().catch((reason: unknown) => reason);
    expect(isUniqueViolation(error)).toBe(true);
    expect(isUniqueViolation(new Error('no'))).toBe(false);
  });

  it('shows nothing that is not committed to reads outside', async () => {
    const ledger = await openLedger(place);
    const { store } = ledger;
    const written = Promise.withResolvers<void>();
    const release = Promise.withResolvers<void>();
    const writing = store.transaction(async (trx) => {
      await trx.insertInto('entry').values(entry('a')).execute();
      written.resolve();
      await release.promise;
      throw new Error('undone');
    });
    await written.promise;
    const reading = entryIds(store);
    await turn();
    release.resolve();
    await expect(writing).rejects.toThrow('undone');
    expect(await reading).toEqual([]);
  });

  it('shows what was committed as soon as its transaction has resolved', async () => {
    const ledger = await openLedger(place);
    const { store } = ledger;
    for (const id of ['a', 'b', 'c']) {
      await store.transaction((trx) => trx.insertInto('entry').values(entry(id)).execute());
      expect(await entryIds(store)).toContain(id);
    }
  });

  it('lets transactions take turns, first come, first served', async () => {
    const ledger = await openLedger(place);
    const { store } = ledger;
    const seen: string[] = [];
    await Promise.all(
      ['a', 'b', 'c'].map((id) =>
        store.transaction(async (trx) => {
          seen.push(`${id} begins`);
          await turn();
          await trx.insertInto('entry').values(entry(id)).execute();
          seen.push(`${id} ends`);
        }),
      ),
    );
    expect(seen).toEqual(['a', 'b', 'c'].flatMap((id) => [`${id} begins`, `${id} ends`]));
  });

  it('refuses itself inside of its own transaction instead of waiting for ever', async () => {
    const ledger = await openLedger(place);
    const other = await openLedger(place);
    const { store } = ledger;
    const nested = expect.objectContaining({ reason: 'STORE_NESTED_TRANSACTION' });
    await store.transaction(async () => {
      await expect(store.transaction(async () => 1)).rejects.toEqual(nested);
      await expect(entryIds(store)).rejects.toEqual(nested);
      expect(() => store.close()).toThrow(nested);
      expect(await other.store.transaction(() => entryIds(other.store)).catch(() => 'no')).toBe(
        'no',
      );
      expect(await entryIds(other.store)).toEqual([]);
      expect(await other.store.transaction(async () => 2)).toBe(2);
    });
  });

  it('may be used by what a transaction left running', async () => {
    const ledger = await openLedger(place);
    const { store } = ledger;
    const committed = Promise.withResolvers<void>();
    let later: Promise<string[]> | undefined;
    await store.transaction(async (trx) => {
      later = committed.promise.then(() => entryIds(store));
      await trx.insertInto('entry').values(entry('a')).execute();
    });
    committed.resolve();
    expect(await later).toEqual(['a']);
  });

  it('refuses a query that comes after its transaction has ended', async () => {
    const ledger = await openLedger(place);
    const { store } = ledger;
    const go = Promise.withResolvers<void>();
    let late: Promise<unknown> | undefined;
    await store.transaction(async (trx) => {
      late = go.promise.then(() => trx.insertInto('entry').values(entry('late')).execute());
      late.catch(() => 'seen below');
    });
    const next = store.transaction(async (trx) => {
      go.resolve();
      await turn();
      await trx.insertInto('entry').values(entry('next')).execute();
    });
    await expect(late).rejects.toThrow(/ended|committed/);
    await next;
    expect(await entryIds(store)).toEqual(['next']);
  });

  it('refuses writes, transactions and streams on db', async () => {
    const ledger = await openLedger(place);
    const { db } = ledger.store;
    const readOnly = expect.objectContaining({ reason: 'STORE_READ_ONLY' });
    await expect(db.insertInto('entry').values(entry('a')).execute()).rejects.toEqual(readOnly);
    await expect(db.transaction().execute(async () => 1)).rejects.toEqual(readOnly);
    const stream = db.selectFrom('entry').selectAll().stream();
    await expect(stream[Symbol.asyncIterator]().next()).rejects.toMatchObject({
      reason: 'STORE_STREAMING_UNSUPPORTED',
    });
    expect(await entryIds(ledger.store)).toEqual([]);
    await ledger.store.transaction((trx) => trx.insertInto('entry').values(entry('a')).execute());
  });

  it('leaves beginning and ending a transaction to nobody else', async () => {
    const ledger = await openLedger(place);
    const { store } = ledger;
    for (const control of ['commit', 'ROLLBACK', ' savepoint x', 'begin']) {
      await expect(store.transaction((trx) => sql.raw(control).execute(trx))).rejects.toMatchObject(
        { reason: 'STORE_TRANSACTION_CONTROL' },
      );
    }
  });

  it('undoes a transaction that takes too long, and serves the next', async () => {
    const ledger = await openLedger(place, { transactionTimeoutMs: 100 });
    const { store } = ledger;
    const never = Promise.withResolvers<void>();
    const hanging = store.transaction(async (trx) => {
      await trx.insertInto('entry').values(entry('a')).execute();
      await never.promise;
    });
    await expect(hanging).rejects.toMatchObject({
      kind: 'deadline_exceeded',
      metadata: { limit_ms: '100' },
    });
    await store.transaction((trx) => trx.insertInto('entry').values(entry('b')).execute());
    expect(await entryIds(store)).toEqual(['b']);
  });

  it('refuses a transaction more than may wait, naming the limit (SYS-3)', async () => {
    const ledger = await openLedger(place, { maxQueued: 2 });
    const { store } = ledger;
    const three = await Promise.allSettled([1, 2, 3].map((n) => store.transaction(async () => n)));
    expect(three.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'rejected']);
    expect(three[2]).toMatchObject({
      reason: { reason: 'STORE_QUEUE_FULL', metadata: { limit: '2' } },
    });
    expect(await store.transaction(async () => 4)).toBe(4);
  });

  it('counts a commit for each transaction that wrote, background ones apart', async () => {
    const ledger = await openLedger(place);
    const { store } = ledger;
    expect([store.commits, store.backgroundCommits]).toEqual([0, 0]);
    await store.transaction((trx) => trx.selectFrom('entry').selectAll().execute());
    expect([store.commits, store.backgroundCommits]).toEqual([0, 0]);
    await store.transaction((trx) =>
      trx
        .insertInto('entry')
        .values([entry('a'), entry('b')])
        .returning('id')
        .execute(),
    );
    expect([store.commits, store.backgroundCommits]).toEqual([1, 0]);
    const undone = store.transaction(async (trx) => {
      await trx.deleteFrom('entry').execute();
      throw new Error('undone');
    });
    await expect(undone).rejects.toThrow('undone');
    expect([store.commits, store.backgroundCommits]).toEqual([1, 0]);
    await store.transaction((trx) => trx.deleteFrom('entry').execute(), { background: true });
    expect([store.commits, store.backgroundCommits]).toEqual([1, 1]);
  });

  it('runs a work in the async context of its caller, for spans', async () => {
    const ledger = await openLedger(place);
    const { store } = ledger;
    const span = new AsyncLocalStorage<string>();
    const seen = await Promise.all(
      ['a', 'b', 'c'].map((name) =>
        span.run(name, () =>
          store.transaction(async (trx) => {
            await trx.selectFrom('entry').selectAll().execute();
            return span.getStore();
          }),
        ),
      ),
    );
    expect(seen).toEqual(['a', 'b', 'c']);
  });

  it('serves who waits before it closes, and nobody after', async () => {
    const ledger = await openLedger(place);
    const { store } = ledger;
    const waiting = [1, 2, 3].map((n) => store.transaction(async () => n));
    const closing = store.close();
    expect(await Promise.all(waiting)).toEqual([1, 2, 3]);
    await closing;
    await store.close();
    const closed = expect.objectContaining({ kind: 'unavailable', reason: 'STORE_CLOSED' });
    await expect(store.transaction(async () => 1)).rejects.toEqual(closed);
    await expect(entryIds(store)).rejects.toEqual(closed);
  });
});

describe('a store in a file', () => {
  it('says that another process writes, and works again after', async () => {
    const file = tempFolder().file('ledger.db');
    const ledger = await openLedgerAt({ dialect: 'sqlite', file }, { busyTimeoutMs: 1 });
    const other = new DatabaseSync(file);
    other.exec('BEGIN IMMEDIATE');
    await expect(ledger.store.transaction(async () => 1)).rejects.toMatchObject({
      reason: 'STORE_BUSY',
      message: expect.stringContaining(file),
    });
    other.close();
    expect(await ledger.store.transaction(async () => 1)).toBe(1);
  });
});
