import { sql } from 'kysely';
import { describe, expect, it } from 'vitest';
import { entry } from './ledger.ts';
import { entryIds, type OpenLedger, openLedger, openLedgerAt, PLACES } from './open-ledger.ts';

/** Two stores on one schema, like those of two processes. */
async function openReplicas(): Promise<readonly [OpenLedger, OpenLedger]> {
  const first = await openLedger('PostgreSQL');
  return [first, await openLedgerAt(first.location, { busyTimeoutMs: 50 })];
}

describe.runIf(PLACES.includes('PostgreSQL'))('replicas on one PostgreSQL schema', () => {
  it('serialize transactions, so that no read value changes before the write (EM-3, SB-6)', async () => {
    const [first] = await openReplicas();
    const second = await openLedgerAt(first.location);
    const { store } = first;
    await store.transaction((trx) =>
      trx.insertInto('account').values({ name: 'a', balance: 0n }).execute(),
    );
    const addOne = async ({ store: replica }: OpenLedger) =>
      await replica.transaction(async (trx) => {
        const { balance } = await trx
          .selectFrom('account')
          .select('balance')
          .executeTakeFirstOrThrow();
        await trx
          .updateTable('account')
          .set({ balance: balance + 1n })
          .execute();
      });
    await Promise.all(Array.from({ length: 60 }, (_, n) => addOne(n % 2 === 0 ? first : second)));
    expect(await store.db.selectFrom('account').select('balance').execute()).toEqual([
      { balance: 60n },
    ]);
  });

  it('report a held write lock after a timeout and recover', async () => {
    const [first, second] = await openReplicas();
    const inside = Promise.withResolvers<void>();
    const release = Promise.withResolvers<void>();
    const writing = first.store.transaction(async (trx) => {
      await trx.insertInto('entry').values(entry('a')).execute();
      inside.resolve();
      await release.promise;
    });
    await inside.promise;
    await expect(second.store.transaction(async () => 1)).rejects.toMatchObject({
      kind: 'unavailable',
      reason: 'STORE_BUSY',
    });
    expect(await entryIds(second.store)).toEqual([]);
    release.resolve();
    await writing;
    expect(await second.store.transaction(async () => 1)).toBe(1);
    expect(await entryIds(second.store)).toEqual(['a']);
  });

  it('release the lock and roll back when the connection breaks, and reconnect (SYS-4)', async () => {
    const [first, second] = await openReplicas();
    const writing = first.store.transaction(async (trx) => {
      await trx.insertInto('entry').values(entry('lost')).execute();
      const { rows } = await sql<{ pid: number }>`select pg_backend_pid() as pid`.execute(trx);
      await sql`select pg_terminate_backend(${rows[0]?.pid ?? 0})`.execute(second.store.db);
      await trx.insertInto('entry').values(entry('late')).execute();
    });
    await expect(writing).rejects.toMatchObject({ reason: 'STORE_UNREACHABLE' });
    for (const { store } of [second, first]) {
      const id = store === first.store ? 'by first' : 'by second';
      await store.transaction((trx) => trx.insertInto('entry').values(entry(id)).execute());
    }
    expect(await entryIds(first.store)).toEqual(['by first', 'by second']);
  });

  it('sort text by code point for any collation of the database', async () => {
    const [{ store }] = await openReplicas();
    const ids = ['b', 'B', 'a', 'A', '_', 'ä', 'Z'];
    await store.transaction((trx) =>
      trx
        .insertInto('entry')
        .values(ids.map((id) => entry(id)))
        .execute(),
    );
    expect(await entryIds(store)).toEqual(['A', 'B', 'Z', '_', 'a', 'b', 'ä']);
  });

  it('report an unreachable database without its address, and reject unsupported values', async () => {
    const [{ store, location }] = await openReplicas();
    const unreachable = {
      dialect: 'postgres',
      schema: 's',
      url: 'postgres://u:secret@127.0.0.1:1/d',
    } as const;
    await expect(openLedgerAt(unreachable)).rejects.toMatchObject({
      kind: 'unavailable',
      reason: 'STORE_UNREACHABLE',
      message: expect.not.stringContaining('secret'),
    });
    if (location.dialect !== 'postgres') throw new Error('unreachable');
    await expect(openLedgerAt({ ...location, schema: 'Bad"Name' })).rejects.toMatchObject({
      reason: 'STORE_INVALID_SCHEMA_NAME',
    });
    const nul = store.transaction((trx) =>
      trx.insertInto('entry').values(entry('a\u0000')).execute(),
    );
    await expect(nul).rejects.toMatchObject({ reason: 'STORE_INVALID_TEXT' });
  });
});
