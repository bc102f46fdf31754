import { setImmediate as turn } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import type { TransactionOptions } from '../src/index.ts';
import { entry } from './ledger.ts';
import { entryIds, openLedger } from './open-ledger.ts';

// A database that replicas share ignores the delay.
describe.each(['a file', 'memory'] as const)('the delay of a commit in %s', (place) => {
  it('delays a transaction until another one shares its commit (CO-1)', async () => {
    const { store } = await openLedger(place, { maxBatchMs: 60_000 });
    const began: string[] = [];
    const insert = (id: string, options: TransactionOptions) =>
      store.transaction(async (trx) => {
        began.push(id);
        await trx.insertInto('entry').values(entry(id)).execute();
      }, options);
    const delayed = insert('a', { commitDelayMs: 3_600_000 });
    await turn();
    expect(began).toEqual([]);
    await Promise.all([delayed, insert('b', {})]);
    expect(began).toEqual(['a', 'b']);
    expect(store.commits).toBe(1);
    const last = insert('c', { commitDelayMs: 3_600_000 });
    await insert('d', { urgent: true });
    await last;
    expect(began).toEqual(['a', 'b', 'd', 'c']);
    expect(store.commits).toBe(2);
  });

  it('ends when the store closes (CO-1)', async () => {
    const { store } = await openLedger(place);
    const delayed = store.transaction(
      (trx) => trx.insertInto('entry').values(entry('a')).execute(),
      { commitDelayMs: 3_600_000 },
    );
    await Promise.all([delayed, store.close()]);
    expect(store.commits).toBe(1);
  });

  it('ends with a separate commit, even if a later transaction fails (CO-1)', async () => {
    const { store } = await openLedger(place);
    const insert = (id: string) =>
      store.transaction((trx) => trx.insertInto('entry').values(entry(id)).execute(), {
        commitDelayMs: 20,
      });
    await insert('a');
    expect(store.commits).toBe(1);
    const delayed = insert('b');
    const failed = store.transaction(async () => {
      throw new Error('thrown on purpose');
    });
    await expect(failed).rejects.toThrow('thrown on purpose');
    await delayed;
    expect(store.commits).toBe(2);
    expect(await entryIds(store)).toEqual(['a', 'b']);
  });
});
