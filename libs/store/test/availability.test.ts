import { closeSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { freePorts } from '@writ/testing/distributed';
import { startDedicatedPostgres } from '@writ/testing/postgres';
import pg from 'pg';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { createReplicas, openSharedStore } from '../src/index.ts';
import { leadershipOf } from '../src/replicas/leadership.ts';
import { type LedgerDatabase, ledgerMigrations } from './ledger.ts';
import { openLedger, openLedgerAt, PLACES } from './open-ledger.ts';

const UNREACHABLE = { reason: 'STORE_UNREACHABLE' };

describe.each(PLACES)('the availability of a store in %s', (place) => {
  it('is reported until the store is closed (SYS-4)', async () => {
    const { store } = await openLedger(place);
    await expect(store.checkAvailable()).resolves.toBeUndefined();
    await store.close();
    await expect(store.checkAvailable()).rejects.toMatchObject({ reason: 'STORE_CLOSED' });
  });
});

/**
 * Creates a role whose connections can be limited. Returns the role, a location that uses it, and a session of the
 * superuser.
 */
async function limitedRole() {
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
  return { role, admin, location: { ...location, url: limited.href } };
}

describe.runIf(PLACES.includes('PostgreSQL'))('the availability of a store', () => {
  it('is lost when no session for writes can be opened, and is restored by the next check (SYS-4)', async () => {
    const { role, admin, location } = await limitedRole();
    const { store } = await openLedgerAt(location);
    const write = () =>
      store.transaction(async (trx) => trx.selectFrom('entry').select('id').execute());
    await write();
    const sessions = () =>
      admin.query<{ pid: number }>('select pid from pg_stat_activity where usename = $1', [role]);
    await vi.waitFor(async () => expect((await sessions()).rowCount).toBe(1));
    const { rows } = await sessions();
    await store.checkAvailable();
    await admin.query(`alter role ${role} connection limit 1`);
    await admin.query('select pg_terminate_backend($1)', [rows[0]?.pid]);
    // The connection limit leaves only the session of the availability check. The first write fails because its session
    // was terminated, the next one because no session can be opened.
    await vi.waitFor(async () => {
      await expect(write()).rejects.toMatchObject(UNREACHABLE);
      await expect(store.checkAvailable()).rejects.toMatchObject(UNREACHABLE);
    });
    await admin.query(`alter role ${role} connection limit -1`);
    await expect(store.checkAvailable()).resolves.toBeUndefined();
    await write();
  });

  it('is kept while a session for writes is open, even if no second one can be opened (SYS-4)', async () => {
    const { role, admin, location } = await limitedRole();
    const { store } = await openLedgerAt(location);
    const write = (runId: string, until?: Promise<void>) => {
      const begun = Promise.withResolvers<void>();
      const ended = store.transaction(
        async (trx) => {
          await trx.selectFrom('entry').select('id').execute();
          begun.resolve();
          await until;
        },
        { run: { tenant: 'acme', runId } },
      );
      return { begun: begun.promise, ended };
    };
    const released = Promise.withResolvers<void>();
    const first = write('run-1', released.promise);
    await first.begun;
    await store.checkAvailable();
    const sessions = 'select pid from pg_stat_activity where usename = $1';
    await vi.waitFor(async () => expect((await admin.query(sessions, [role])).rowCount).toBe(2));
    await admin.query(`alter role ${role} connection limit 2`);
    const waiting = write('run-1');
    await expect(write('run-2').ended).rejects.toMatchObject(UNREACHABLE);
    await expect(store.checkAvailable()).resolves.toBeUndefined();
    released.resolve();
    await Promise.all([first.ended, waiting.ended]);
    await write('run-2').ended;
  });

  it('is lost on a standby server, which accepts reads, until the server is promoted (SYS-4)', async () => {
    const [port = 0] = await freePorts(1);
    const postgres = await startDedicatedPostgres(port);
    onTestFinished(() => postgres.stop());
    const admin = async (sql: string) => {
      const client = new pg.Client({ connectionString: postgres.url() });
      await client.connect();
      const { rows } = await client.query<Record<string, string>>(sql);
      await client.end();
      return rows;
    };
    const location = { dialect: 'postgres', url: postgres.url(), schema: 'ledger' } as const;
    const { store } = await openLedgerAt(location);
    await store.checkAvailable();
    const [settings] = await admin('show data_directory');
    await postgres.kill('fast');
    closeSync(openSync(join(settings?.data_directory ?? '', 'standby.signal'), 'w'));
    await postgres.start();
    await vi.waitFor(() => store.db.selectFrom('entry').select('id').execute());
    await expect(store.checkAvailable()).rejects.toMatchObject({
      reason: 'STORE_UNREACHABLE',
      message: expect.stringContaining('standby server'),
    });
    const write = () =>
      store.transaction(async (trx) => trx.selectFrom('entry').select('id').execute());
    await expect(write()).rejects.toMatchObject({
      reason: 'STORE_UNREACHABLE',
      message: expect.stringContaining('standby server'),
      metadata: { sqlstate: '0A000' },
    });
    const replicas = createReplicas(store.db);
    onTestFinished(() => replicas.stop());
    await expect(replicas.claim('task')).rejects.toMatchObject({
      reason: 'STORE_UNREACHABLE',
      message: expect.stringContaining('standby server'),
      metadata: { sqlstate: '25006' },
    });
    await admin('select pg_promote()');
    await vi.waitFor(() => store.checkAvailable());
    await write();
  });

  it('is lost for work that needs a new session while the server rejects the role (SYS-4)', async () => {
    const { role, admin, location } = await limitedRole();
    const { store } = await openLedgerAt(location, { transactionTimeoutMs: 60_000 });
    const write = (runId: string, work: () => Promise<void>) =>
      store.transaction(work, { run: { tenant: 'acme', runId } });
    const begun = Promise.withResolvers<void>();
    const released = Promise.withResolvers<void>();
    onTestFinished(() => released.resolve());
    const first = write('run-1', async () => {
      begun.resolve();
      await released.promise;
    });
    await begun.promise;
    await admin.query(`alter role ${role} nologin`);
    const rejected = { reason: 'STORE_UNREACHABLE', metadata: { sqlstate: '28000' } };
    const idle = async () => undefined;
    const replicas = createReplicas(store.db);
    const leadership = leadershipOf(store.db, 'relay');
    await expect(write('run-2', idle)).rejects.toMatchObject(rejected);
    await expect(store.db.selectFrom('entry').select('id').execute()).rejects.toMatchObject(
      rejected,
    );
    await expect(replicas.findDead(['rep'])).rejects.toMatchObject(rejected);
    await expect(leadership.acquire()).rejects.toMatchObject(rejected);
    // When a store is opened, the error is passed through.
    await expect(openLedgerAt(location)).rejects.toMatchObject({ code: '28000' });
    await admin.query(`alter role ${role} login`);
    await write('run-2', idle);
    released.resolve();
    await first;
  });

  it('is lost when the other replicas have not seen this replica as alive for three seconds (SYS-4)', async () => {
    const { role, admin, location } = await limitedRole();
    const store = await openSharedStore<LedgerDatabase>({
      location,
      migrations: ledgerMigrations,
      service: 'ledger',
    });
    onTestFinished(() => store.close());
    await store.transaction(async (trx) => trx.selectFrom('entry').select('id').execute());
    await store.checkAvailable();
    // The sessions of the availability check and for writes stay open. The session that signals liveness is terminated
    // and cannot be reopened.
    await admin.query(`alter role ${role} connection limit 2`);
    const terminateLivenessSession = `select pg_terminate_backend(a.pid) from pg_stat_activity a
      where usename = $1 and exists (select from pg_locks l where l.pid = a.pid and l.locktype = 'advisory')`;
    expect((await admin.query(terminateLivenessSession, [role])).rowCount).toBe(1);
    await vi.waitFor(() => expect(store.replicas.isVisible()).toBe(false));
    await expect(store.checkAvailable()).resolves.toBeUndefined();
    const now = performance.now.bind(performance);
    const ahead = vi.spyOn(performance, 'now').mockImplementation(() => now() + 3_000);
    onTestFinished(() => ahead.mockRestore());
    await expect(store.checkAvailable()).rejects.toMatchObject({
      reason: 'STORE_UNREACHABLE',
      message: expect.stringContaining('other replicas'),
    });
    await admin.query(`alter role ${role} connection limit -1`);
    await vi.waitFor(() => expect(store.replicas.isVisible()).toBe(true), 5_000);
    await expect(store.checkAvailable()).resolves.toBeUndefined();
  });
});
