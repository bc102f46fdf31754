import { sql } from 'kysely';
import { describe, expect, it, onTestFinished } from 'vitest';
import { type CommitObserver, openStore } from '../src/index.ts';
import { entry, type LedgerDatabase, ledgerMigrations } from './ledger.ts';
import { emptyLocation, openLedgerAt, PLACES } from './open-ledger.ts';

const FULL = {
  kind: 'resource_exhausted',
  reason: 'STORE_DISK_FULL',
  message: expect.stringMatching(/^disk full: /),
};

describe('a full disk', () => {
  it('fails only the transaction that needs space (SYS-3)', async () => {
    let reported = 0;
    const observer: CommitObserver = {
      caller: () => undefined,
      committed: () => undefined,
      diskFull: () => {
        reported += 1;
      },
    };
    const location = await emptyLocation('a file');
    const migrations = ledgerMigrations;
    const store = await openStore<LedgerDatabase>({
      location,
      migrations,
      service: 'full',
      observer,
    });
    onTestFinished(() => store.close());
    const limit = (pages: number) =>
      store.transaction(async (trx) => {
        await sql`pragma max_page_count = ${sql.lit(pages)}`.execute(trx);
      });
    const long = { ...entry('long'), id: 'x'.repeat(100_000) };
    await limit(1);
    const write = () => store.transaction((trx) => trx.insertInto('entry').values(long).execute());
    await expect(write()).rejects.toMatchObject(FULL);
    expect(reported).toBe(1);
    expect(await store.db.selectFrom('entry').selectAll().execute()).toEqual([]);
    await limit(1_000_000);
    await write();
    expect(reported).toBe(1);
  });

  it.runIf(PLACES.includes('PostgreSQL'))(
    'causes the same error on PostgreSQL as on SQLite (SYS-3)',
    async () => {
      const { store } = await openLedgerAt(await emptyLocation('PostgreSQL'));
      // The error that the server raises when it cannot extend a file.
      const fails = sql`do $$ begin raise exception 'could not extend file' using errcode = '53100'; end $$`;
      await expect(
        store.transaction(async (trx) => {
          await fails.execute(trx);
        }),
      ).rejects.toMatchObject(FULL);
      await store.transaction((trx) => trx.insertInto('entry').values(entry('next')).execute());
    },
  );
});
