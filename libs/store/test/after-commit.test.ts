import { describe, expect, it } from 'vitest';
import { afterCommit } from '../src/index.ts';
import { entry } from './ledger.ts';
import { entryIds, openLedger, PLACES } from './open-ledger.ts';

describe.each(PLACES)('actions after the commit of a transaction in %s', (place) => {
  it('run once, in order, when the transaction is durable, and never after a rollback (SYS-1)', async () => {
    const { store } = await openLedger(place);
    const done: string[] = [];
    const attempt = async (name: string, fails: boolean) =>
      await store.transaction(async (trx) => {
        await trx.insertInto('entry').values(entry(name)).execute();
        afterCommit(trx, () => done.push(`${name} 1`));
        afterCommit(trx, () => done.push(`${name} 2`));
        if (fails) throw new Error('rolled back');
        expect(done).toEqual([]);
      });
    await expect(attempt('undone', true)).rejects.toThrow('rolled back');
    await attempt('kept', false);
    expect(done).toEqual(['kept 1', 'kept 2']);
    expect(await entryIds(store)).toEqual(['kept']);
  });
});
