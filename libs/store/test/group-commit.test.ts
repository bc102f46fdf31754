import { setImmediate as turn } from 'node:timers/promises';
import fc from 'fast-check';
import { sql } from 'kysely';
import { describe, expect, it } from 'vitest';
import { int64 } from '../src/index.ts';
import { entry, insertAhead } from './ledger.ts';
import { entryIds, type OpenLedger, openLedger, PLACES, type Place } from './open-ledger.ts';

const ACCOUNTS = ['x', 'y', 'z'] as const;

type Fault = 'none' | 'throws' | 'violates' | 'violates ahead' | 'ends the shared transaction';

interface Transfer {
  readonly from: number;
  readonly to: number;
  readonly amount: bigint;
  readonly fault: Fault;
  readonly pauses: number;
  readonly late: boolean;
}

const transfers = (...faults: Fault[]) =>
  fc.array(
    fc.record({
      from: fc.nat(2),
      to: fc.nat(2),
      amount: fc.bigInt({ min: 1n, max: 2n ** 55n }),
      fault: fc.constantFrom(...faults),
      pauses: fc.nat(2),
      late: fc.boolean(),
    }),
    { maxLength: 16 },
  );

async function openAccounts(place: Place, maxBatch = 64): Promise<OpenLedger> {
  const ledger = await openLedger(place, { maxBatch });
  await ledger.store.transaction((trx) =>
    trx
      .insertInto('account')
      .values(ACCOUNTS.map((name) => ({ name, balance: 0n })))
      .execute(),
  );
  return ledger;
}

/** Transfers an amount in two statements, so that half a transfer would change the sum. */
async function move({ store }: OpenLedger, id: number, transfer: Transfer): Promise<void> {
  const { from, to, amount, fault, pauses, late } = transfer;
  if (late) await turn();
  await store.transaction(async (trx) => {
    const add = (index: number, change: bigint) =>
      trx
        .updateTable('account')
        .set(({ eb }) => ({ balance: eb('balance', '+', change) }))
        .where('name', '=', ACCOUNTS[index] ?? '')
        .execute();
    await add(from, -amount);
    for (let pause = 0; pause < pauses; pause += 1) await turn();
    if (fault === 'throws') throw new Error('thrown on purpose');
    await add(to, amount);
    await trx
      .insertInto('entry')
      .values(entry(`t${id}`, amount))
      .execute();
    if (fault === 'violates')
      await trx
        .insertInto('entry')
        .values(entry(`t${id}`))
        .execute();
    if (fault === 'violates ahead') await insertAhead(trx, entry(`t${id}`));
    if (fault === 'ends the shared transaction') {
      await sql`insert or rollback into entry select * from entry where id = ${`t${id}`}`.execute(
        trx,
      );
    }
  });
}

/** Runs the transfers concurrently and compares the ledger with a plain model of the successful ones. */
async function runAndCompare(
  ledger: OpenLedger,
  list: readonly Transfer[],
): Promise<PromiseSettledResult<void>[]> {
  const { db } = ledger.store;
  const reader = Promise.all(
    list.map(async () => {
      await turn();
      const { total } = await db
        .selectFrom('account')
        .select(({ fn }) => fn.sum('balance').as('total'))
        .executeTakeFirstOrThrow();
      expect(int64(total)).toBe(0n);
    }),
  );
  const outcomes = await Promise.allSettled(list.map((transfer, id) => move(ledger, id, transfer)));
  await reader;
  const model = [0n, 0n, 0n];
  const ids: string[] = [];
  for (const [id, { from, to, amount }] of list.entries()) {
    if (outcomes[id]?.status !== 'fulfilled') continue;
    model[from] = (model[from] ?? 0n) - amount;
    model[to] = (model[to] ?? 0n) + amount;
    ids.push(`t${id}`);
  }
  const rows = await db.selectFrom('account').select('balance').orderBy('name').execute();
  expect(rows.map(({ balance }) => balance)).toEqual(model);
  expect(await entryIds(ledger.store)).toEqual(ids.sort());
  return outcomes;
}

describe.each(PLACES)('group commit in %s', (place) => {
  // Each run needs a new ledger, which takes long on PostgreSQL.
  const numRuns = place === 'PostgreSQL' ? 3 : 25;
  // A slow machine must not end a batch early.
  const together = { maxBatchMs: 60_000 };

  it('shares a commit among waiting transactions, each of which fails alone', async () => {
    await fc.assert(
      fc.asyncProperty(
        transfers('none', 'none', 'throws', 'violates', 'violates ahead'),
        fc.integer({ min: 1, max: 6 }),
        async (list, maxBatch) => {
          const ledger = await openAccounts(place, maxBatch);
          const outcomes = await runAndCompare(ledger, list);
          expect(outcomes.map(({ status }) => status)).toEqual(
            list.map(({ fault }) => (fault === 'none' ? 'fulfilled' : 'rejected')),
          );
          expect(ledger.store.commits - 1).toBeLessThanOrEqual(
            list.filter(({ fault }) => fault === 'none').length,
          );
        },
      ),
      { numRuns },
    );
  });

  it('rejects every failed transaction, even if one ends the shared transaction', async () => {
    await fc.assert(
      fc.asyncProperty(
        transfers('none', 'none', 'throws', 'ends the shared transaction'),
        async (list) => {
          const ledger = await openAccounts(place);
          const outcomes = await runAndCompare(ledger, list);
          for (const [id, { fault }] of list.entries()) {
            if (fault !== 'none') expect(outcomes[id]?.status).toBe('rejected');
          }
        },
      ),
      { numRuns },
    );
  });

  it('runs waiting urgent transactions first, in order of arrival (BD-2)', async () => {
    const ledger = await openAccounts(place, 2);
    const ran: string[] = [];
    const enter = (name: string, options = {}) =>
      ledger.store.transaction(async () => void ran.push(name), options);
    await Promise.all([
      enter('request 1'),
      enter('background', { background: true }),
      enter('request 2'),
      enter('halt 1', { urgent: true }),
      enter('halt 2', { urgent: true }),
    ]);
    expect(ran).toEqual(['halt 1', 'halt 2', 'request 1', 'background', 'request 2']);
  });

  it('uses one commit for all transactions of an event loop turn', async () => {
    const ledger = await openLedger(place, together);
    const { store } = ledger;
    const ids = Array.from({ length: 20 }, (_, n) => `e${n}`);
    await Promise.all(
      ids.map((id) =>
        store.transaction((trx) => trx.insertInto('entry').values(entry(id)).execute()),
      ),
    );
    expect(store.commits).toBe(1);
    expect(await entryIds(store)).toEqual([...ids].sort());
  });

  it('resolves no transaction before the shared commit', async () => {
    const ledger = await openLedger(place, together);
    const { store } = ledger;
    const answers: string[] = [];
    const first = store
      .transaction((trx) => trx.insertInto('entry').values(entry('a')).execute())
      .then(() => answers.push('a'));
    const second = store
      .transaction(async (trx) => {
        await trx.insertInto('entry').values(entry('b')).execute();
        await turn();
        expect(answers).toEqual([]);
      })
      .then(() => answers.push('b'));
    await Promise.all([first, second]);
    expect(answers).toEqual(['a', 'b']);
    expect(store.commits).toBe(1);
  });

  it('rejects all transactions when the shared commit fails, and continues', async () => {
    const ledger = await openLedger(place, together);
    const { store } = ledger;
    // A deferred constraint makes COMMIT itself fail.
    await store.transaction(async (trx) => {
      await sql`create table parent (id integer primary key)`.execute(trx);
      await sql`create table child (id integer references parent (id) deferrable initially deferred)`.execute(
        trx,
      );
    });
    const writing = Promise.allSettled([
      store.transaction((trx) => trx.insertInto('entry').values(entry('a')).execute()),
      store.transaction((trx) => sql`insert into child values (1)`.execute(trx)),
      store.transaction((trx) => trx.insertInto('entry').values(entry('b')).execute()),
    ]);
    const seen = await entryIds(store);
    expect(seen).toEqual([]);
    for (const outcome of await writing) {
      expect(outcome).toMatchObject({
        status: 'rejected',
        reason: { kind: 'unavailable', reason: 'STORE_COMMIT_FAILED' },
      });
    }
    expect(await entryIds(store)).toEqual([]);
    const before = store.commits;
    await store.transaction((trx) => trx.insertInto('entry').values(entry('c')).execute());
    expect(await entryIds(store)).toEqual(['c']);
    expect(store.commits).toBe(before + 1);
  });

  it('rejects a transaction whose callback continues after a statement has ended the transaction', async () => {
    const ledger = await openLedger(place, together);
    const { store } = ledger;
    await store.transaction((trx) => trx.insertInto('entry').values(entry('a')).execute());
    const outcomes = await Promise.allSettled([
      store.transaction((trx) => trx.insertInto('entry').values(entry('b')).execute()),
      store.transaction(async (trx) => {
        const repeat = sql`insert or rollback into entry select * from entry`.execute(trx);
        await repeat.catch((error: unknown) => error);
        const outside = trx.insertInto('entry').values(entry('outside')).execute();
        await outside.catch((error: unknown) => error);
      }),
      store.transaction((trx) => trx.insertInto('entry').values(entry('c')).execute()),
    ]);
    // PostgreSQL keeps earlier work; on SQLite such a statement ends the shared transaction.
    const keepsEarlierWork = place === 'PostgreSQL';
    expect(outcomes).toMatchObject([
      keepsEarlierWork
        ? { status: 'fulfilled' }
        : { status: 'rejected', reason: { reason: 'STORE_COMMIT_FAILED' } },
      { status: 'rejected', reason: { reason: 'STORE_TRANSACTION_LOST' } },
      { status: 'fulfilled' },
    ]);
    expect(await entryIds(store)).toEqual(keepsEarlierWork ? ['a', 'b', 'c'] : ['a', 'c']);
  });
});
