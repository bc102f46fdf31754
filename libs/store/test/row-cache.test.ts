import { cacheSizes } from '@writ/kernel';
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
  readonly afterWrite: 'caches' | 'deletes';
  readonly fault: Fault;
}

const step: fc.Arbitrary<Step> = fc.record({
  name: fc.constantFrom(...NAMES),
  amount: fc.bigInt({ min: 1n, max: 9n }),
  afterWrite: fc.constantFrom('caches', 'deletes'),
  fault: fc.constantFrom('none', 'none', 'throws', 'ends the shared transaction'),
});

/** Rounds of steps. One of two processes runs the steps of a round concurrently, so that they share commits. */
const schedules = fc.array(
  fc.record({ other: fc.boolean(), steps: fc.array(step, { minLength: 1, maxLength: 6 }) }),
  { maxLength: 8 },
);

/** Numbers of cache hits that returned the stored row and of hits that returned a stale row. */
class Hits {
  current = 0;
  stale = 0;
}

async function balanceOf(trx: Trx, name: string): Promise<bigint> {
  const query = trx.selectFrom('account').select('balance').where('name', '=', name);
  return (await query.executeTakeFirstOrThrow()).balance;
}

function run(cache: RowCache<bigint>, hits: Hits, { name, amount, afterWrite, fault }: Step) {
  return async (trx: Trx): Promise<void> => {
    const known = cache.get(trx, name);
    const balance = await balanceOf(trx, name);
    if (known === balance) hits.current += 1;
    else if (known !== undefined) hits.stale += 1;
    cache.set(trx, name, balance);
    await trx
      .updateTable('account')
      .set({ balance: balance + amount })
      .where('name', '=', name)
      .execute();
    if (afterWrite === 'caches') cache.set(trx, name, balance + amount);
    else cache.delete(trx, name);
    if (fault === 'throws') throw new Error('rolled back');
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

describe.each(PLACES)('cached rows of a store in %s', (place) => {
  it('always equal the stored rows, despite rollbacks and other writers', async () => {
    const { store, location } = await openAccounts(place);
    const other = place === 'memory' ? store : (await openLedgerAt(location)).store;
    const cache = new RowCache<bigint>();
    const hits = new Hits();
    await fc.assert(
      fc.asyncProperty(schedules, async (schedule) => {
        for (const { other: byOther, steps } of schedule) {
          const writer = byOther ? other : store;
          await Promise.allSettled(steps.map((each) => writer.transaction(run(cache, hits, each))));
        }
        expect(hits.stale).toBe(0);
      }),
      { numRuns: place === 'PostgreSQL' ? 20 : 150 },
    );
    if (place === 'PostgreSQL') expect(hits.current).toBe(0);
    else expect(hits.current).toBeGreaterThan(100);
  });

  it('are cached for a transaction if they are locked, and on SQLite also for later transactions', async () => {
    const { store } = await openAccounts(place);
    const locked = new RowCache<bigint>({ areLocked: true });
    await store.transaction(async (trx) => {
      expect(locked.get(trx, 'run/x')).toBeUndefined();
      locked.set(trx, 'run/x', 1n);
      locked.set(trx, 'run/y', 2n);
      locked.set(trx, 'other/x', 3n);
      expect(locked.get(trx, 'run/x')).toBe(1n);
      locked.delete(trx, 'run/x');
      expect(locked.get(trx, 'run/x')).toBeUndefined();
      locked.deletePrefix(trx, 'run/');
      expect([locked.get(trx, 'run/y'), locked.get(trx, 'other/x')]).toEqual([undefined, 3n]);
      expect(locked.keeps(trx)).toBe(place !== 'PostgreSQL');
    });
    const known = await store.transaction(async (trx) => locked.get(trx, 'other/x'));
    expect(known).toBe(place === 'PostgreSQL' ? undefined : 3n);
    expect(locked.get(store.db, 'other/x')).toBeUndefined();
    await store.transaction(async (trx) => {
      locked.set(trx, 'x', 1n);
      locked.clear(trx);
      expect(locked.get(trx, 'x')).toBeUndefined();
    });
  });

  it('are unavailable outside of transactions and through a transaction that has ended', async () => {
    const { store } = await openAccounts(place);
    const cache = new RowCache<bigint>();
    const ended = await store.transaction(async (trx) => {
      cache.set(trx, 'x', 1n);
      return { trx };
    });
    cache.set(ended.trx, 'x', 2n);
    expect(cache.get(ended.trx, 'x')).toBeUndefined();
    expect(cache.get(store.db, 'x')).toBeUndefined();
    const recalled = await recall(store, cache);
    expect(recalled).toBe(place === 'PostgreSQL' ? undefined : 1n);
  });

  it('are limited in total size: the oldest are evicted first, large rows are not cached (BD-1, CO-2)', async () => {
    const { store } = await openLedger(place);
    const cache = new RowCache<{ readonly text: string }>();
    const row = { text: 'x'.repeat(1024 * 1024) };
    await store.transaction(async (trx) => {
      expect(cache.keeps(trx)).toBe(place !== 'PostgreSQL');
      if (!cache.keeps(trx)) return;
      for (let n = 0; n < 40; n += 1) cache.set(trx, `run-${n}/agent`, row);
      const kept = Array.from({ length: 40 }, (_, n) => cache.get(trx, `run-${n}/agent`));
      expect(kept.indexOf(row)).toBeGreaterThan(8);
      expect(kept.slice(kept.indexOf(row)).every((found) => found === row)).toBe(true);
      cache.set(trx, 'large', { text: 'x'.repeat(8 * 1024 * 1024) });
      expect(cache.get(trx, 'large')).toBeUndefined();
      cache.deletePrefix(trx, 'run-39/');
      expect(cache.get(trx, 'run-39/agent')).toBeUndefined();
      expect(cache.get(trx, 'run-38/agent')).toBe(row);
    });
  });

  it('are included in the cache size until a transaction is rolled back (CO-2)', async () => {
    const { store } = await openAccounts(place);
    const cache = new RowCache<{ readonly text: string }>();
    const before = bytesOfRows();
    await store.transaction(async (trx) => {
      for (let n = 0; n < 40; n += 1) cache.set(trx, `${n}`, { text: 'x'.repeat(1024 * 1024) });
    });
    const grown = bytesOfRows() - before;
    expect(grown).toBeLessThan(33 * 1024 * 1024);
    if (place === 'PostgreSQL') expect(grown).toBeLessThan(1024 * 1024);
    else expect(grown).toBeGreaterThan(30 * 1024 * 1024);
    const failed = store.transaction(async (trx) => {
      await trx.updateTable('account').set({ balance: 1n }).execute();
      throw new Error('rolled back');
    });
    await expect(failed).rejects.toThrow('rolled back');
    await store.transaction(async (trx) => cache.get(trx, '39'));
    expect(bytesOfRows() - before).toBeLessThan(1024 * 1024);
  });

  it('are not shared between stores', async () => {
    const cache = new RowCache<bigint>();
    const first = await openAccounts(place);
    await first.store.transaction(async (trx) => cache.set(trx, 'x', 1n));
    const second = await openAccounts(place);
    expect(await recall(second.store, cache)).toBeUndefined();
  });
});

/** Bytes of the cached rows of this process. */
function bytesOfRows(): number {
  return cacheSizes().find(({ name }) => name === 'rows')?.bytes ?? 0;
}

async function recall(store: Store<LedgerDatabase>, cache: RowCache<bigint>) {
  return await store.transaction(async (trx) => cache.get(trx, 'x'));
}
