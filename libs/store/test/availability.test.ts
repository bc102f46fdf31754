import pg from 'pg';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { openLedger, openLedgerAt, PLACES } from './open-ledger.ts';

const UNREACHABLE = { reason: 'STORE_UNREACHABLE' };

describe.each(PLACES)('the availability of a store in %s', (place) => {
  it('is given while it is open (SYS-4)', async () => {
    const { store } = await openLedger(place);
    await expect(store.checkAvailable()).resolves.toBeUndefined();
    await store.close();
    await expect(store.checkAvailable()).rejects.toMatchObject({ reason: 'STORE_CLOSED' });
  });
});

describe.runIf(PLACES.includes('PostgreSQL'))('the availability of a store', () => {
  it('ends when no session for writes can be opened, and returns without a request (SYS-4)', async () => {
    const { location } = await openLedger('PostgreSQL');
    if (location.dialect !== 'postgres') throw new Error('unreachable');
    const { schema, url } = location;
    const admin = new pg.Client({ connectionString: url });
    await admin.connect();
    const role = `limited_${schema}`.slice(0, 60);
    await admin.query(`create role ${role} login`);
    await admin.query(`grant usage, create on schema ${schema} to ${role}`);
    await admin.query(`grant all on all tables in schema ${schema} to ${role}`);
    onTestFinished(async () => {
      await admin.query(`drop owned by ${role}; drop role ${role}`);
      await admin.end();
    });
    const limited = new URL(url);
    limited.username = role;
    const { store } = await openLedgerAt({ ...location, url: limited.href });
    const write = () =>
      store.transaction(async (trx) => trx.selectFrom('entry').select('id').execute());
    await write();
    const writers = () =>
      admin.query<{ pid: number }>('select pid from pg_stat_activity where usename = $1', [role]);
    await vi.waitFor(async () => expect((await writers()).rowCount).toBe(1));
    const { rows } = await writers();
    await store.checkAvailable();
    await admin.query(`alter role ${role} connection limit 1`);
    await admin.query('select pg_terminate_backend($1)', [rows[0]?.pid]);
    // The session for reads is the one that the limit leaves. The first write finds that its session is lost, the next
    // one that none can be opened.
    await vi.waitFor(async () => {
      await expect(write()).rejects.toMatchObject(UNREACHABLE);
      await expect(store.checkAvailable()).rejects.toMatchObject(UNREACHABLE);
    });
    await admin.query(`alter role ${role} connection limit -1`);
    await expect(store.checkAvailable()).resolves.toBeUndefined();
    await write();
  });
});
