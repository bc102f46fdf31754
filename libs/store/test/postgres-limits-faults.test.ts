import { setImmediate as nextEventLoopTurn } from 'node:timers/promises';
import { startFaultProxy } from '@writ/testing/faults';
import { sql } from 'kysely';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { PostgresLimits, StoreLocation } from '../src/index.ts';
import { entry } from './ledger.ts';
import { emptyLocation, entryIds, openLedgerAt, PLACES } from './open-ledger.ts';

async function limitedLocation(limits: Partial<PostgresLimits>) {
  const location: StoreLocation = await emptyLocation('PostgreSQL');
  if (location.dialect !== 'postgres') throw new Error('unreachable');
  return { ...location, limits };
}

/** Blocks the event loop, like much synchronous work on a busy machine. */
function block(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

const settings = sql<{ name: string; setting: string }>`
  select name, setting from pg_settings
  where name in ('statement_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout')`;

const endless = sql`select pg_sleep(600)`;

/** The reason code of a rejected promise. */
function reasonOf(outcome: PromiseSettledResult<unknown>): unknown {
  return outcome.status === 'rejected' ? outcome.reason.reason : undefined;
}

describe.runIf(PLACES.includes('PostgreSQL'))('the limits of a store on PostgreSQL', () => {
  it('are enforced by the server for each transaction and read', async () => {
    const { store } = await openLedgerAt(
      await limitedLocation({
        statementTimeoutMs: 4_000,
        lockTimeoutMs: 9_000,
        idleTimeoutMs: 5_500,
      }),
    );
    const { rows } = await store.transaction((trx) => settings.execute(trx));
    expect(Object.fromEntries(rows.map(({ name, setting }) => [name, Number(setting)]))).toEqual({
      statement_timeout: 4_000,
      lock_timeout: 9_000,
      idle_in_transaction_session_timeout: 5_500,
    });
    const reads = await settings.execute(store.db);
    expect(reads.rows).toContainEqual({ name: 'statement_timeout', setting: '4000' });
  });

  it('end a long statement that blocks others', async () => {
    const location = await limitedLocation({ statementTimeoutMs: 1_500, lockTimeoutMs: 60_000 });
    const { store } = await openLedgerAt(location);
    const beside = await openLedgerAt(location);
    const inside = Promise.withResolvers<void>();
    const long = store.transaction((trx) => {
      inside.resolve();
      return sql`select pg_sleep(600)`.execute(trx);
    });
    const outcome = expect(long).rejects.toMatchObject({ reason: 'STORE_TRANSACTION_TIMEOUT' });
    await inside.promise;
    const next = beside.store.transaction((trx) =>
      trx.insertInto('entry').values(entry('next')).execute(),
    );
    await outcome;
    await next;
    expect(await entryIds(store)).toEqual(['next']);
    await expect(sql`select pg_sleep(600)`.execute(store.db)).rejects.toMatchObject({
      reason: 'STORE_TRANSACTION_TIMEOUT',
    });
  });

  it('roll back the transaction of an idle process (SYS-4)', async () => {
    const location = await limitedLocation({ idleTimeoutMs: 1_000, statementTimeoutMs: 60_000 });
    const { store } = await openLedgerAt(location);
    const beside = await openLedgerAt(location);
    const inside = Promise.withResolvers<void>();
    const other = Promise.withResolvers<void>();
    const silent = store.transaction(async (trx) => {
      await trx.insertInto('entry').values(entry('silent')).execute();
      inside.resolve();
      await other.promise;
    });
    await inside.promise;
    await beside.store.transaction((trx) =>
      trx.insertInto('entry').values(entry('next')).execute(),
    );
    other.resolve();
    await expect(silent).rejects.toMatchObject({ kind: 'unavailable' });
    expect(await entryIds(store)).toEqual(['next']);
  });

  it('do not count time in which the event loop is blocked while a session opens (SYS-4)', async () => {
    const location = await limitedLocation({ connectTimeoutMs: 2_000 });
    const opening = openLedgerAt(location);
    block(2_500);
    expect(await entryIds((await opening).store)).toEqual([]);
  });

  it('let a read wait for slow reads, and do not delay the health check and reads of halts (BD-2, SYS-4)', async () => {
    const location = await limitedLocation({
      poolSize: 1,
      statementTimeoutMs: 800,
      lockTimeoutMs: 1,
    });
    const { store } = await openLedgerAt(location);
    // The reads together take longer than the time limit for the response to one statement, which is about 6 s.
    const reads = Array.from({ length: 10 }, () => endless.execute(store.db));
    const ended = Promise.allSettled(reads);
    const next = entryIds(store);
    // Waits until the reads are queued.
    await nextEventLoopTurn();
    const urgent = [store.checkAvailable(), sql`select 1`.execute(store.urgentDb)];
    const first = Promise.race([Promise.all(urgent), ended.then(() => 'all reads have ended')]);
    expect(await first).toHaveLength(2);
    for (const outcome of await ended) {
      expect(outcome).toMatchObject({ reason: { reason: 'STORE_TRANSACTION_TIMEOUT' } });
    }
    expect(await next).toEqual([]);
  });

  it('limit the number of waiting reads, which run in order (BD-1)', async () => {
    const location = await limitedLocation({ poolSize: 1, statementTimeoutMs: 500 });
    const { store } = await openLedgerAt(location, { maxQueued: 2 });
    const ended: number[] = [];
    const reads = Array.from({ length: 11 }, async (_, index) => {
      await endless.execute(store.db).finally(() => ended.push(index));
    });
    const outcomes = await Promise.allSettled(reads);
    expect(outcomes.map(reasonOf)).toEqual([
      ...Array.from({ length: 10 }, () => 'STORE_TRANSACTION_TIMEOUT'),
      'STORE_QUEUE_FULL',
    ]);
    expect(ended).toEqual([10, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    expect(await entryIds(store)).toEqual([]);
  });

  it('limit the sessions for reads and the time to open one', async () => {
    const location = await limitedLocation({ poolSize: 2 });
    const { store } = await openLedgerAt(location);
    const pids = await Promise.all(
      Array.from({ length: 8 }, async () => {
        const { rows } = await sql<{ pid: number }>`select pg_backend_pid() as pid`.execute(
          store.db,
        );
        return rows[0]?.pid;
      }),
    );
    expect(new Set(pids).size).toBe(2);
    const wire = await startFaultProxy(new URL(location.url).host);
    onTestFinished(() => wire.close());
    wire.fail('blackhole');
    const url = location.url.replace(new URL(location.url).host, wire.address);
    const impatient = { ...location, url, limits: { connectTimeoutMs: 150 } };
    await expect(openLedgerAt(impatient)).rejects.toMatchObject({
      reason: 'STORE_UNREACHABLE',
      message: expect.stringContaining('timeout'),
    });
  });
});
