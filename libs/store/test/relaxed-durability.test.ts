import { AsyncLocalStorage } from 'node:async_hooks';
import { sql } from 'kysely';
import { describe, expect, it } from 'vitest';
import type { TransactionOptions } from '../src/store.ts';
import { entry } from './ledger.ts';
import { entryIds, openLedger } from './open-ledger.ts';

const RELAXED = { background: true, relaxedDurability: true };
/** SQLite's modes of a durable commit and of one without fsync. */
const [FULL, NORMAL] = [2, 1];

describe('a transaction with relaxed durability', () => {
  it('commits without fsync alone, and durably together with a durable one', async () => {
    // On a busy machine a batch would end before the second transaction.
    const ledger = await openLedger('a file', { maxBatchMs: 60_000 });
    const { store } = ledger;
    const write = (id: string, options?: TransactionOptions) =>
      store.transaction(async (trx) => {
        await trx.insertInto('entry').values(entry(id)).execute();
        const { rows } = await sql<{ synchronous: number }>`pragma synchronous`.execute(trx);
        return rows[0]?.synchronous;
      }, options);
    expect(await write('a')).toBe(FULL);
    expect(await Promise.all([write('b', RELAXED), write('c', RELAXED)])).toEqual([NORMAL, NORMAL]);
    expect(await Promise.all([write('d', RELAXED), write('e')])).toEqual([FULL, FULL]);
    expect(await write('f', { background: true })).toBe(FULL);
    // A foreground transaction is always durable.
    expect(await write('g', { relaxedDurability: true })).toBe(FULL);
    expect(await entryIds(store)).toEqual(['a', 'b', 'c', 'd', 'e', 'f', 'g']);
    expect([store.commits, store.backgroundCommits]).toEqual([3, 2]);
  });

  it('does not share its commit with a durable transaction that arrives during it', async () => {
    const ledger = await openLedger('a file');
    const { store } = ledger;
    // Like another request, outside of the transaction.
    const outside = AsyncLocalStorage.snapshot();
    let later: Promise<unknown> | undefined;
    const synchronous = async (
      id: string,
      options?: TransactionOptions,
    ): Promise<number | undefined> =>
      await store.transaction(async (trx) => {
        if (id === 'a') later = outside(() => synchronous('b'));
        await trx.insertInto('entry').values(entry(id)).execute();
        await new Promise((resolve) => setImmediate(resolve));
        const { rows } = await sql<{ synchronous: number }>`pragma synchronous`.execute(trx);
        return rows[0]?.synchronous;
      }, options);
    expect(await synchronous('a', RELAXED)).toBe(NORMAL);
    expect(await later).toBe(FULL);
  });
});
