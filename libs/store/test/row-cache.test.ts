import fc from 'fast-check';
import { sql, type Transaction } from 'kysely';
import { describe, expect, it } from 'vitest';
import { RowCache, type Store } from '../src/index.ts';
import type { LedgerDatabase } from './ledger.ts';
import { openLedger, openLedgerAt, PLACES, type Place } from './open-ledger.ts';

const NAMES = ['x', 'y'] as const;

type Trx = Transaction<LedgerDatabase>;
type Fault = 'none' | 'throws' | 'ends the shared transaction';

interface Step {
  readonly name: (typeof NAMES)[number];
  readonly amount: bigint;
  readonly told: 'remembers' | 'forgets';
  readonly fault: Fault;
}

const step: fc.Arbitrary<Step> = fc.record({
  name: fc.constantFrom(...NAMES),
  amount: fc.bigInt({ min: 1n, max: 9n }),
  told: fc.constantFrom('remembers', 'forgets'),
  fault: fc.constantFrom('none', 'none', 'throws', 'ends the shared transaction'),
});

/** Each time one of two processes takes some steps at once, so that they share commits. */
const schedules = fc.array(
  fc.record({ other: fc.boolean(), steps: fc.array(step, { minLength: 1, maxLength: 6 }) }),
  { maxLength: 8 },
);

/** How often what was recalled was right, and how often not. */
class Score {
  right = 0;
  wrong = 0;
}

async function balanceOf(trx: Trx, name: string): Promise<bigint> {
  const query = trx.selectFrom('account').select('balance').where('name', '=', name);
  return (await query.executeTakeFirstOrThrow()).balance;
}

function take(memory: RowCache<bigint>, score: Score, { name, amount, told, fault }: Step) {
  return async (trx: Trx): Promise<void> => {
    const known = memory.get(trx, name);
    const balance = await balanceOf(trx, name);
    if (known === balance) score.right += 1;
    else if (known !== undefined) score.wrong += 1;
    memory.set(trx, name, balance);
    await trx
      .updateTable('account')
      .set({ balance: balance + amount })
      .where('name', '=', name)
      .execute();
    if (told === 'remembers') memory.set(trx, name, balance + amount);
    else memory.delete(trx, name);
    if (fault === 'throws') throw new Error('changed my mind');
    if (fault === 'none') return;
    const doomed = sql`insert or rollback into account (name, balance) values ('x', 0)`;
    await doomed.execute(trx);
  };
}

async function openAccounts(place: Place) {
  const ledger = await openLedger(place);
  await ledger.store.transaction((trx) =>
    trx
      .insertInto('account')
      .values(NAMES.map((name) => ({ name, balance: 0n })))
      .execute(),
  );
  return ledger;
}

describe.each(PLACES)('rows remembered by a store in %s', (place) => {
  it('are never other than those that would be read, whatever is undone and whoever else writes', async () => {
    const { store, location } = await openAccounts(place);
    const other = place === 'memory' ? store : (await openLedgerAt(location)).store;
    const memory = new RowCache<bigint>();
    const score = new Score();
    await fc.assert(
      fc.asyncProperty(schedules, async (schedule) => {
        for (const { other: byOther, steps } of schedule) {
          const writer = byOther ? other : store;
          await Promise.allSettled(
            steps.map((each) => writer.transaction(take(memory, score, each))),
          );
        }
        expect(score.wrong).toBe(0);
      }),
      { numRuns: place === 'PostgreSQL' ? 20 : 150 },
    );
    if (place === 'PostgreSQL') expect(score.right).toBe(0);
    else expect(score.right).toBeGreaterThan(100);
  });

  it('are nothing to a work that is over, nor outside of transactions', async () => {
    const { store } = await openAccounts(place);
    const memory = new RowCache<bigint>();
    const over = await store.transaction(async (trx) => {
      memory.set(trx, 'x', 1n);
      return { trx };
    });
    memory.set(over.trx, 'x', 2n);
    expect(memory.get(over.trx, 'x')).toBeUndefined();
    expect(memory.get(store.db, 'x')).toBeUndefined();
    const recalled = await recall(store, memory);
    expect(recalled).toBe(place === 'PostgreSQL' ? undefined : 1n);
  });

  it('belong to one store', async () => {
    const memory = new RowCache<bigint>();
    const first = await openAccounts(place);
    await first.store.transaction(async (trx) => memory.set(trx, 'x', 1n));
    const second = await openAccounts(place);
    expect(await recall(second.store, memory)).toBeUndefined();
  });
});

async function recall(store: Store<LedgerDatabase>, memory: RowCache<bigint>) {
  return await store.transaction(async (trx) => memory.get(trx, 'x'));
}
