import { AsyncLocalStorage } from 'node:async_hooks';
import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { TransactionOptions } from '../src/store.ts';
import { entry } from './ledger.ts';
import { entryIds, type OpenLedger, openLedger } from './open-ledger.ts';

const RELAXED = { background: true, relaxedDurability: true };

type Done = (error: NodeJS.ErrnoException | null) => void;

function spyOnSyncs() {
  const spy = vi.spyOn(fs, 'fdatasync');
  // Updates the named imports of the function in other modules.
  syncBuiltinESMExports();
  return spy;
}

let syncs: ReturnType<typeof spyOnSyncs>;

beforeEach(() => {
  syncs = spyOnSyncs();
});

afterEach(() => {
  syncs.mockRestore();
  syncBuiltinESMExports();
});

function write({ store }: OpenLedger, id: string, options?: TransactionOptions): Promise<unknown> {
  return store.transaction((trx) => trx.insertInto('entry').values(entry(id)).execute(), options);
}

/** Blocks the next fdatasync: `begun` resolves when it is called, `end` completes it. */
function holdSync(): { readonly begun: Promise<void>; readonly end: Done } {
  const begun = Promise.withResolvers<void>();
  let done: Done = () => undefined;
  syncs.mockImplementationOnce((_file, callback) => {
    done = callback;
    begun.resolve();
  });
  return { begun: begun.promise, end: (error) => done(error) };
}

describe('a transaction with relaxed durability', () => {
  it('commits without fsync, unless it shares the commit with a durable transaction', async () => {
    // With the default limit, a batch on a busy machine could end before the second transaction.
    const ledger = await openLedger('a file', { maxBatchMs: 60_000 });
    syncs.mockClear();
    await write(ledger, 'a');
    expect(syncs).toHaveBeenCalledTimes(1);
    await Promise.all([write(ledger, 'b', RELAXED), write(ledger, 'c', RELAXED)]);
    expect(syncs).toHaveBeenCalledTimes(1);
    await Promise.all([write(ledger, 'd', RELAXED), write(ledger, 'e')]);
    expect(syncs).toHaveBeenCalledTimes(2);
    await write(ledger, 'f', { background: true });
    expect(syncs).toHaveBeenCalledTimes(3);
    // A foreground transaction is always durable.
    await write(ledger, 'g', { relaxedDurability: true });
    expect(syncs).toHaveBeenCalledTimes(4);
    const { store } = ledger;
    expect(await entryIds(store)).toEqual(['a', 'b', 'c', 'd', 'e', 'f', 'g']);
    expect([store.commits, store.backgroundCommits]).toEqual([3, 2]);
  });

  it('does not share its commit with a durable transaction that arrives during the relaxed one', async () => {
    const ledger = await openLedger('a file');
    const { store } = ledger;
    syncs.mockClear();
    // Runs code outside the async context of the transaction, like another request.
    const outside = AsyncLocalStorage.snapshot();
    let later: Promise<unknown> | undefined;
    await store.transaction(async (trx) => {
      later = outside(() => write(ledger, 'b'));
      await trx.insertInto('entry').values(entry('a')).execute();
      await new Promise((resolve) => setImmediate(resolve));
    }, RELAXED);
    expect([store.backgroundCommits, store.commits]).toEqual([1, 0]);
    await later;
    expect(store.commits).toBe(1);
    expect(syncs).toHaveBeenCalledTimes(1);
  });
});

describe('a durable transaction', () => {
  it('resolves, and is visible to reads, only when its commit is on disk (SYS-4)', async () => {
    const ledger = await openLedger('a file');
    const { begun, end } = holdSync();
    const seen: string[] = [];
    const written = write(ledger, 'a').then(() => seen.push('written'));
    await begun;
    const read = entryIds(ledger.store).then((ids) => seen.push(`read ${ids.join()}`));
    const next = write(ledger, 'b').then(() => seen.push('next'));
    await new Promise((resolve) => setImmediate(resolve));
    expect(seen).toEqual([]);
    end(null);
    await Promise.all([written, read, next]);
    expect(seen.toSorted()).toEqual(['next', 'read a', 'written']);
    expect(seen.at(-1)).toBe('next');
  });

  it('fails when the disk fails, as do all later reads and writes (SYS-4)', async () => {
    const ledger = await openLedger('a file');
    const failed = { reason: 'STORE_DISK_FAILED' };
    const { begun, end } = holdSync();
    const written = expect(write(ledger, 'a')).rejects.toMatchObject(failed);
    await begun;
    const read = expect(entryIds(ledger.store)).rejects.toMatchObject(failed);
    end(Object.assign(new Error('EIO'), { code: 'EIO' }));
    await Promise.all([written, read]);
    await expect(write(ledger, 'b')).rejects.toMatchObject(failed);
    await expect(entryIds(ledger.store)).rejects.toMatchObject(failed);
    await expect(ledger.store.checkAvailable()).rejects.toMatchObject(failed);
  });
});
