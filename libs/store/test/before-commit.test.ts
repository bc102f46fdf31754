import { describe, expect, it } from 'vitest';
import { beforeCommit } from '../src/index.ts';
import { entry } from './ledger.ts';
import { entryIds, openLedger, PLACES } from './open-ledger.ts';

describe.each(PLACES)('work at the end of a transaction in %s', (place) => {
  it('undoes the transaction with the error that came first, not with those that follow from it (SYS-1)', async () => {
    const { store } = await openLedger(place);
    const failed = store.transaction(async (trx) => {
      const insert = (id: string) => trx.insertInto('entry').values(entry(id)).execute();
      await insert('known');
      beforeCommit(trx, {}, async () => {
        await insert('first');
        // PostgreSQL refuses it because of the error of the second work.
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
