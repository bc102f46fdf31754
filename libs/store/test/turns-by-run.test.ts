import { setImmediate as nextEventLoopTurn } from 'node:timers/promises';
import { ManualClock } from '@writ/kernel';
import { isPostgresAvailable } from '@writ/testing/postgres';
import { sql } from 'kysely';
import { describe, expect, it, onTestFinished } from 'vitest';
import {
  appendOutbox,
  beforeCommit,
  createOutboxRelay,
  type Store,
  type TransactionOptions,
} from '../src/index.ts';
import { entry, type LedgerDatabase } from './ledger.ts';
import { openLedger, openLedgerAt } from './open-ledger.ts';
import { AT, message } from './outbox-fixture.ts';

type Ledger = Store<LedgerDatabase>;

const RUN_1 = { run: { tenant: 'acme', runId: 'run-1' } };
const RUN_2 = { run: { tenant: 'acme', runId: 'run-2' } };
const RUN_OF_OTHER = { run: { tenant: 'other', runId: 'run-1' } };
const TENANT = { tenant: 'acme' };
const OTHER_TENANT = { tenant: 'other' };
const ALL = {};
const RUNS_1_AND_3 = {
  runs: [RUN_1.run, { tenant: 'acme', runId: 'run-3' }, RUN_OF_OTHER.run],
};
const RESOURCE = { resource: 'acme' };
const RUN_1_AND_RESOURCE = { ...RUN_1, ...RESOURCE };
const RUN_2_AND_RESOURCE = { ...RUN_2, ...RESOURCE };
const MANY_RUNS = {
  runs: Array.from({ length: 100 }, (_, n) => ({ tenant: 'third', runId: `${n}` })),
};

const OVERLAPPING: readonly (readonly [string, TransactionOptions, TransactionOptions])[] = [
  ['two runs', RUN_1, RUN_2],
  ['runs with the same id in two tenants', RUN_1, RUN_OF_OTHER],
  ['two tenants', TENANT, OTHER_TENANT],
  ['a tenant and a run of another tenant', TENANT, RUN_OF_OTHER],
  ['several runs and another run', RUNS_1_AND_3, RUN_2],
  ['a resource and a run', RESOURCE, RUN_1],
  ['a resource and the tenant of the same name', RESOURCE, TENANT],
  ['two resources', RESOURCE, { resource: 'other' }],
];

const SERIALIZED: readonly (readonly [string, TransactionOptions, TransactionOptions])[] = [
  ['one run', RUN_1, RUN_1],
  ['a run and its tenant', RUN_1, TENANT],
  ['a tenant and one of its runs', TENANT, RUN_1],
  ['one tenant', TENANT, TENANT],
  ['a run and an unscoped transaction', RUN_1, ALL],
  ['an unscoped transaction and a run', ALL, RUN_1],
  ['a tenant and an unscoped transaction', TENANT, ALL],
  ['two unscoped transactions', ALL, ALL],
  ['several runs and one of them', RUNS_1_AND_3, RUN_1],
  ['one of several runs and all of them', RUN_OF_OTHER, RUNS_1_AND_3],
  ['a tenant and several runs, one of them of this tenant', OTHER_TENANT, RUNS_1_AND_3],
  ['one resource', RESOURCE, RESOURCE],
  ['two runs with one resource', RUN_1_AND_RESOURCE, RUN_2_AND_RESOURCE],
  ['a resource and an unscoped transaction', RESOURCE, ALL],
  ['more runs than the lock limit, which locks the whole schema', RUN_1, MANY_RUNS],
];

/** Begins a transaction that stays open until it is released. */
async function hold(
  store: Ledger,
  options: TransactionOptions,
  atRelease: () => void = () => undefined,
) {
  const begun = Promise.withResolvers<void>();
  const released = Promise.withResolvers<void>();
  const ended = store.transaction(async (trx) => {
    await sql`select 1`.execute(trx);
    begun.resolve();
    await released.promise;
    atRelease();
  }, options);
  await begun.promise;
  return {
    release: async () => {
      released.resolve();
      await ended;
    },
  };
}

/** Opens two stores on one schema, or returns the same store twice. */
async function openTwo(where: string, oneAtATime = false): Promise<readonly [Ledger, Ledger]> {
  const { store, location } = await openLedger('PostgreSQL');
  const options = { ...location, oneAtATime };
  const first = oneAtATime ? (await openLedgerAt(options)).store : store;
  return [first, where === 'one process' ? first : (await openLedgerAt(options)).store];
}

/** Waits some round trips, in which a transaction that is not blocked would begin. */
async function roundTrips(store: Ledger): Promise<void> {
  for (let count = 0; count < 5; count += 1) {
    await nextEventLoopTurn();
    await store.db.selectFrom('entry').select('id').execute();
  }
}

describe.runIf(isPostgresAvailable()).each(['one process', 'two processes'])(
  'transactions in %s',
  (where) => {
    it.each(OVERLAPPING)('overlap for %s (SYS-5)', async (_, first, second) => {
      const [store, other] = await openTwo(where);
      const { release } = await hold(store, first);
      // If the transactions did not overlap, this one would wait until the transaction timeout.
      await other.transaction((trx) => sql`select 1`.execute(trx), second);
      await release();
    });

    it.each(SERIALIZED)('run one after the other for %s (EM-3, SV-9)', async (_, first, second) => {
      const [store, other] = await openTwo(where);
      const log: string[] = [];
      const { release } = await hold(store, first, () => log.push('first ends'));
      const later = other.transaction(async () => void log.push('second begins'), second);
      await roundTrips(store);
      await release();
      await later;
      expect(log).toEqual(['first ends', 'second begins']);
    });

    it('run one after the other in a store with `oneAtATime`, even for two runs (SYS-5)', async () => {
      const [store, other] = await openTwo(where, true);
      const log: string[] = [];
      const { release } = await hold(store, RUN_1, () => log.push('first ends'));
      const later = other.transaction(async () => void log.push('second begins'), RUN_2);
      await roundTrips(store);
      await release();
      await later;
      expect(log).toEqual(['first ends', 'second begins']);
    });

    it('are not overtaken while they wait for the exclusive schema lock (SV-9)', async () => {
      const [store, other] = await openTwo(where);
      const log: string[] = [];
      const { release } = await hold(store, RUN_1, () => log.push('run 1'));
      const halt = store.transaction(async () => void log.push('halt'), { urgent: true });
      await waitingAtServer(store);
      const after = other.transaction(async () => void log.push('run 2'), RUN_2);
      await roundTrips(store);
      await release();
      await Promise.all([halt, after]);
      expect(log).toEqual(['run 1', 'halt', 'run 2']);
    });
  },
);

/** Resolves when a transaction waits for a lock. */
async function waitingAtServer(store: Ledger): Promise<void> {
  const waiting = async () => {
    const { rows } = await sql`select 1 from pg_locks where locktype = 'advisory'
      and not granted and database = (select oid from pg_database where datname = current_database())`.execute(
      store.db,
    );
    return rows.length;
  };
  await expect.poll(waiting).toBeGreaterThan(0);
}

describe.runIf(isPostgresAvailable())('transactions of different runs that wait together', () => {
  it.each([
    [4, 1],
    [8, 2],
  ])(
    '%i of them share %i commits, even if more sessions are idle (SYS-5, CO-1)',
    async (count, commits) => {
      const { store } = await openLedger('PostgreSQL');
      const before = store.commits;
      const works = Array.from({ length: count }, (_, n) =>
        store.transaction(
          async (trx) => {
            await trx
              .insertInto('entry')
              .values(entry(`${n}`))
              .execute();
            if (n === 1) throw new Error('Only this one is rolled back.');
          },
          { run: { tenant: 'acme', runId: `${n}` } },
        ),
      );
      const outcomes = await Promise.allSettled(works);
      expect(outcomes.filter(({ status }) => status === 'rejected')).toHaveLength(1);
      expect(store.commits - before).toBe(commits);
      const entries = await store.db.selectFrom('entry').select('id').execute();
      expect(entries).toHaveLength(count - 1);
    },
  );
});

describe.runIf(isPostgresAvailable())('the outbox of overlapping transactions', () => {
  it('is published in order within each run, including messages that become visible late (HK-1, HK-2)', async () => {
    const { store } = await openLedger('PostgreSQL');
    const published: string[] = [];
    const relay = createOutboxRelay({
      store,
      publish: async ({ eventId }) => void published.push(eventId),
      onError: () => expect.unreachable(),
      clock: new ManualClock(AT),
      // Published messages stay unmarked.
      markIntervalMs: 600_000,
      pollMs: 10,
    });
    onTestFinished(() => relay.stop());
    const append = (id: string, run: TransactionOptions, wait?: () => Promise<void>) =>
      store.transaction(async (trx) => {
        appendOutbox(trx, message(id), AT);
        if (wait !== undefined) beforeCommit(trx, wait, wait);
      }, run);
    const inserted = Promise.withResolvers<void>();
    const released = Promise.withResolvers<void>();
    const first = append('run 1, first', RUN_1, async () => {
      inserted.resolve();
      await released.promise;
    });
    await inserted.promise;
    await append('run 2', RUN_2);
    relay.start();
    await expect.poll(() => published).toEqual(['run 2']);
    released.resolve();
    await first;
    await append('run 1, second', RUN_1);
    await expect.poll(() => published).toEqual(['run 2', 'run 1, first', 'run 1, second']);
  });
});
