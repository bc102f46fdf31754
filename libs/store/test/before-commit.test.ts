import { describe, expect, it } from 'vitest';
import { beforeCommit } from '../src/index.ts';
import { entry } from './ledger.ts';
import { entryIds, openLedger, PLACES } from './open-ledger.ts';

describe.each(PLACES)('work at the end of a transaction in %s', (place) => {
  it('rolls back the transaction and reports only the error that occurred first (SYS-1)', async () => {
    const { store } = await openLedger(place);
    const failed = store.transaction(async (trx) => {
      const insert = (id: string) => trx.insertInto('entry').values(entry(id)).execute();
      await insert('known');
      beforeCommit(trx, {}, async () => {
        await insert('first');
        // PostgreSQL rejects this statement, because the error of the second function has aborted the transaction.
        await insert('after the first');
      });
      beforeCommit(trx, {}, async () => {
        await insert('known');
      });
    });
    await expect(failed).rejects.toThrow(/unique/i);
    expect(await entryIds(store)).toEqual([]);
  });
});
