import { freePorts } from '@writ/testing/distributed';
import {
  type DedicatedPostgres,
  isPostgresAvailable,
  startDedicatedPostgres,
} from '@writ/testing/postgres';
import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { type HeldCommit, holdCommits } from './held-commit.ts';
import { entry } from './ledger.ts';
import { entryIds, openLedgerAt } from './open-ledger.ts';
import { openPausableProxy } from './pausable-proxy.ts';

const TRIES = 5;

describe.skipIf(!isPostgresAvailable())(
  'a COMMIT during which the PostgreSQL server crashes',
  () => {
    let postgres: DedicatedPostgres;

    beforeAll(async () => {
      const [port = 0] = await freePorts(1);
      postgres = await startDedicatedPostgres(port);
    }, 120_000);
    afterAll(() => postgres?.stop());

    /**
     * Crashes the server during a COMMIT, lets another replica commit one transaction, which may be assigned the
     * transaction id of the lost transaction, and only then lets the first replica query the status of its transaction.
     * @returns the outcome of the lost transaction; undefined if the server did not reuse its id
     */
    async function crashDuringCommit(
      schema: string,
      crash: (held: HeldCommit) => Promise<void>,
    ): Promise<unknown> {
      const proxy = await openPausableProxy(postgres.address);
      onTestFinished(() => proxy.close());
      const location = { dialect: 'postgres', schema } as const;
      const { store: beside } = await openLedgerAt({ ...location, url: postgres.url() });
      const limits = { connectTimeoutMs: 60_000 };
      const url = postgres.url(proxy.address);
      const { store } = await openLedgerAt({ ...location, url, limits });
      const held = await holdCommits(beside, postgres.url(), schema);
      // A transaction id is not reused once the server has written WAL of the transaction to disk.
      await held.admin.query(`alter system set wal_writer_delay = '10s'`);
      await held.admin.query('select pg_reload_conf()');
      let lostXid = 0n;
      const writing = store.transaction(async (trx) => {
        lostXid = await xidOf(trx);
        await trx.insertInto('entry').values(entry('lost')).execute();
      });
      const outcome = writing.catch((error: unknown) => error);
      await held.arrived();
      proxy.pause();
      await crash(held);
      let nextXid = 0n;
      await expect
        .poll(async () => {
          nextXid = await beside.transaction(async (trx) => {
            await trx.insertInto('account').values({ name: 'other', balance: 1n }).execute();
            return await xidOf(trx);
          });
          return nextXid;
        })
        .toBeGreaterThan(0n);
      proxy.resume();
      const answer = await outcome;
      expect(await entryIds(beside)).toEqual([]);
      return nextXid === lostXid ? answer : undefined;
    }

    it.each([
      [
        'the whole server',
        async () => {
          await postgres.kill();
          await postgres.start();
        },
      ],
      [
        'one of its backend processes',
        async ({ admin }: HeldCommit) => {
          const { rows } = await admin.query<{ pid: number }>('select pg_backend_pid() as pid');
          process.kill(rows[0]?.pid ?? Number.NaN, 'SIGKILL');
        },
      ],
    ])(
      'has an unknown outcome if %s is killed and another transaction reuses the transaction id (SYS-4)',
      async (what, crash) => {
        for (let n = 0; n < TRIES; n += 1) {
          const schema = `${what.replaceAll(' ', '_')}_${n}`;
          const answer = await crashDuringCommit(schema, crash);
          if (answer === undefined) continue;
          expect(answer).toMatchObject({ kind: 'unavailable', reason: 'STORE_COMMIT_UNKNOWN' });
          return;
        }
        expect.fail('the transaction id was never reused');
      },
    );
  },
);

async function xidOf(trx: Parameters<ReturnType<typeof sql>['execute']>[0]): Promise<bigint> {
  const { rows } = await sql<{
    number: string;
  }>`select pg_current_xact_id()::text as number`.execute(trx);
  return BigInt(rows[0]?.number ?? 0);
}
