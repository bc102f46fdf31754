import { AsyncLocalStorage } from 'node:async_hooks';
import { sql } from 'kysely';
import { describe, expect, it } from 'vitest';
import type { TransactionOptions } from '../src/store.ts';
import { entry } from './ledger.ts';
import { entryIds, openLedger } from './open-ledger.ts';

const FORGETTABLE = { background: true, relaxedDurability: true };
/** What SQLite calls a commit that waits for the disk, and one that does not. */
const [FULL, NORMAL] = [2, 1];

describe('a transaction that a loss of power may undo', () => {
  it('does not wait for the disk by itself, and lasts where it shares a commit with one that must', async () => {
    const ledger = await openLedger('a file');
    const { store } = ledger;
    const write = (id: string, options?: TransactionOptions) =>
      store.transaction(async (trx) => {
        await trx.insertInto('entry').values(entry(id)).execute();
        const { rows } = await sql<{ synchronous: number }>`pragma synchronous`.execute(trx);
        return rows[0]?.synchronous;
      }, options);
    expect(await write('a')).toBe(FULL);
    expect(await Promise.all([write('b', FORGETTABLE), write('c', FORGETTABLE)])).toEqual([
      NORMAL,
      NORMAL,
    ]);
    expect(await Promise.all([write('d', FORGETTABLE), write('e')])).toEqual([FULL, FULL]);
    expect(await write('f', { background: true })).toBe(FULL);
    // Somebody waits for it, whatever else is said of it.
    expect(await write('g', { relaxedDurability: true })).toBe(FULL);
    expect(await entryIds(store)).toEqual(['a', 'b', 'c', 'd', 'e', 'f', 'g']);
    expect([store.commits, store.backgroundCommits]).toEqual([3, 2]);
  });

  it('makes what comes while it runs wait for a commit of its own, which lasts', async () => {
    const ledger = await openLedger('a file');
    const { store } = ledger;
    // As another request would, which is in no transaction.
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
    expect(await synchronous('a', FORGETTABLE)).toBe(NORMAL);
    expect(await later).toBe(FULL);
  });
});
