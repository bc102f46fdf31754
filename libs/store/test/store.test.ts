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
  it('stores money, flags, times and bytes exactly (EM-4)', async () => {
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

  it('returns the result of the work and rolls back work that throws', async () => {
    const ledger = await openLedger(place);
    const { store } = ledger;
    expect(await store.transaction(async () => 7)).toBe(7);
    const failing = store.transaction(async (trx) => {
      await trx.insertInto('entry').values(entry('a')).execute();
      throw new Error('rolled back by the test');
    });
    await expect(failing).rejects.toThrow('rolled back by the test');
    expect(await entryIds(store)).toEqual([]);
  });

  it('reports a unique violation', async () => {
    const ledger = await openLedger(place);
    const { store } = ledger;
    const insert = () =>
      store.transaction((trx) => trx.insertInto('entry').values(entry('a')).execute());
    await insert();
    const error: unknown = await insert().catch((reason: unknown) => reason);
    expect(isUniqueViolation(error)).toBe(true);
    expect(isUniqueViolation(new Error('no'))).toBe(false);
  });

  it('hides uncommitted data from reads outside of the transaction', async () => {
    const ledger = await openLedger(place);
    const { store } = ledger;
    const written = Promise.withResolvers<void>();
    const release = Promise.withResolvers<void>();
    const writing = store.transaction(async (trx) => {
      await trx.insertInto('entry').values(entry('a')).execute();
      written.resolve();
      await release.promise;
      throw new Error('rolled back');
    });
    await written.promise;
    const reading = entryIds(store);
    await turn();
    release.resolve();
    await expect(writing).rejects.toThrow('rolled back');
    expect(await reading).toEqual([]);
  });

  it('shows committed data once its transaction has resolved', async () => {
    const ledger = await openLedger(place);
    const { store } = ledger;
    for (const id of ['a', 'b', 'c']) {
      await store.transaction((trx) => trx.insertInto('entry').values(entry(id)).execute());
      expect(await entryIds(store)).toContain(id);
    }
  });

  it('runs transactions one after the other in order of arrival', async () => {
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

  it('rejects use inside its own transaction instead of deadlocking', async () => {
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

  it('can be used by work that outlives its transaction', async () => {
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

  it('rejects a query after the end of its transaction', async () => {
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
    await expect(late).rejects.toThrow(/after the end of its transaction|committed/);
    await next;
    expect(await entryIds(store)).toEqual(['next']);
  });

  it('rejects writes, transactions and streams on db', async () => {
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

  it('rejects transaction control statements', async () => {
    const ledger = await openLedger(place);
    const { store } = ledger;
    for (const control of ['commit', 'ROLLBACK', ' savepoint x', 'begin']) {
      await expect(store.transaction((trx) => sql.raw(control).execute(trx))).rejects.toMatchObject(
        { reason: 'STORE_TRANSACTION_CONTROL' },
      );
    }
  });

  it('rolls back a transaction at its time limit and runs the next', async () => {
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

  it('rejects a transaction above the queue limit and names the limit (SYS-3)', async () => {
    const ledger = await openLedger(place, { maxQueued: 2 });
    const { store } = ledger;
    const three = await Promise.allSettled([1, 2, 3].map((n) => store.transaction(async () => n)));
    expect(three.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'rejected']);
    expect(three[2]).toMatchObject({
      reason: { reason: 'STORE_QUEUE_FULL', metadata: { limit: '2' } },
    });
    expect(await store.transaction(async () => 4)).toBe(4);
  });

  it('counts commits with writes, background ones separately', async () => {
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
      throw new Error('rolled back');
    });
    await expect(undone).rejects.toThrow('rolled back');
    expect([store.commits, store.backgroundCommits]).toEqual([1, 0]);
    await store.transaction((trx) => trx.deleteFrom('entry').execute(), { background: true });
    expect([store.commits, store.backgroundCommits]).toEqual([1, 1]);
  });

  it('runs work in the async context of its caller, for spans', async () => {
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

  it('runs waiting transactions before it closes and rejects later ones', async () => {
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
  it('reports a held write lock and recovers', async () => {
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
