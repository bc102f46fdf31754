import { startFaultProxy } from '@writ/testing/faults';
import pg from 'pg';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { createReplicas, type Replicas, type StoreLocation } from '../src/index.ts';
import { type OpenLedger, openLedger, openLedgerAt, PLACES } from './open-ledger.ts';

async function join({ store }: OpenLedger): Promise<Replicas> {
  const replicas = createReplicas(store.db);
  await replicas.start();
  onTestFinished(() => replicas.stop());
  return replicas;
}

async function two(): Promise<readonly [Replicas, Replicas, OpenLedger]> {
  const ledger = await openLedger('PostgreSQL');
  const beside = await openLedgerAt(ledger.location);
  return [await join(ledger), await join(beside), ledger];
}

/** A separate session in the same schema. */
async function adminOf(location: StoreLocation): Promise<pg.Client> {
  if (location.dialect !== 'postgres') throw new Error('unreachable');
  const admin = new pg.Client({ connectionString: location.url });
  await admin.connect();
  onTestFinished(() => admin.end());
  await admin.query(`set search_path to ${location.schema}`);
  return admin;
}

/** Advances the monotonic clock. */
function jumpAhead(ms: number): void {
  const now = performance.now.bind(performance);
  vi.spyOn(performance, 'now').mockImplementation(() => now() + ms);
}

const LOCK_OF = (what: string) => `hashtextextended('writ ${what} ' || current_schema(), 0)`;

describe('a store of one process', () => {
  it('considers all other ids dead (RT-2)', async () => {
    const alone = await join(await openLedger());
    expect(alone.shared).toBe(false);
    expect(await alone.findDead(['rep_former', alone.id])).toEqual(new Set(['rep_former']));
    const claim = await alone.claim('order');
    expect(await alone.claim('order')).toBeUndefined();
    await claim?.release();
    expect(claim?.isHeld()).toBe(false);
    expect((await alone.claim('order'))?.isHeld()).toBe(true);
  });
});

describe.runIf(PLACES.includes('PostgreSQL'))('replicas on one PostgreSQL schema', () => {
  it('detect each other and dead replicas (SYS-5)', async () => {
    const [a, b] = await two();
    expect(await a.findDead([b.id, a.id])).toEqual(new Set());
    await b.stop();
    await expect.poll(() => a.findDead([b.id])).toEqual(new Set([b.id]));
  });

  it('claim a name exclusively until they release it or stop', async () => {
    const [a, b] = await two();
    const claim = await a.claim("a run's writer");
    expect(claim?.isHeld()).toBe(true);
    expect(await b.claim("a run's writer")).toBeUndefined();
    expect(await a.claim("a run's writer")).toBeUndefined();
    const other = await b.claim('another writer');
    expect(other?.isHeld()).toBe(true);
    await claim?.release();
    const next = await b.claim("a run's writer");
    expect(next?.isHeld()).toBe(true);
    await b.stop();
    await expect.poll(async () => (await a.claim("a run's writer"))?.isHeld()).toBe(true);
  });

  it('receive the hints of others, not their own', async () => {
    const [a, b] = await two();
    const received: string[] = [];
    a.onHint('freezes', () => received.push('a freezes'));
    a.onHint('slots:gpt', () => received.push('a slots:gpt'));
    const stop = b.onHint('freezes', () => received.push('b freezes'));
    a.hint('freezes');
    await expect.poll(() => received).toEqual(['b freezes']);
    stop();
    b.hint('slots:gpt');
    a.hint('freezes');
    await expect.poll(() => received).toEqual(['b freezes', 'a slots:gpt']);
  });

  it('receive a hint once, even if it is sent twice in one turn of the event loop', async () => {
    const [a, b] = await two();
    const received: string[] = [];
    for (const topic of ['one', 'two "quoted"', 'three'])
      b.onHint(topic, () => received.push(topic));
    a.hint('one');
    a.hint('two "quoted"');
    a.hint('one');
    await expect.poll(() => received).toEqual(['one', 'two "quoted"']);
    a.hint('three');
    await expect.poll(() => received).toEqual(['one', 'two "quoted"', 'three']);
  });

  it('stay alive after a reconnect but lose their claims', async () => {
    const [a, b, { location }] = await two();
    const claim = await a.claim('writer');
    const admin = await adminOf(location);
    await admin.query(
      `select pg_terminate_backend(pid) from pg_locks where locktype = 'advisory' and pid in
       (select pid from pg_stat_activity
        where application_name = 'writ ledger' and datname = current_database())`,
    );
    await expect.poll(() => claim?.isHeld()).toBe(false);
    // Retried, because the terminated session may be the one of b.
    const deadForB = () => vi.waitFor(() => b.findDead([a.id]));
    expect(await deadForB()).toEqual(new Set());
    await expect.poll(() => a.isVisible()).toBe(true);
    const next = await vi.waitFor(() => b.claim('writer'));
    expect(next?.isHeld()).toBe(true);
    expect(await deadForB()).toEqual(new Set());
  });

  it('are not declared dead after two absences that are far apart in time (SYS-5, TG-5)', async () => {
    const [a, , { location }] = await two();
    const admin = await adminOf(location);
    const other = 'rep_that_comes_and_goes';
    const lock = LOCK_OF(`replica ${other}`);
    expect(await a.findDead([other])).toEqual(new Set());
    await admin.query(`select pg_advisory_lock(${lock})`);
    jumpAhead(3_600_000);
    await admin.query(`select pg_advisory_unlock(${lock})`);
    expect(await a.findDead([other])).toEqual(new Set());
    await expect.poll(() => a.findDead([other])).toEqual(new Set([other]));
  });

  it('lose visibility and claims when the server has not responded for 10 s, until it responds (SYS-4)', async () => {
    const { location } = await openLedger('PostgreSQL');
    if (location.dialect !== 'postgres') throw new Error('unreachable');
    const url = new URL(location.url);
    const wire = await startFaultProxy(url.host);
    onTestFinished(() => wire.close());
    url.host = wire.address;
    const a = await join(await openLedgerAt({ ...location, url: url.href }));
    const claim = await a.claim('writer');
    expect([a.isVisible(), claim?.isHeld()]).toEqual([true, true]);
    wire.fail('stalled');
    // The server ends a session after 15 seconds without notifying the client.
    jumpAhead(12_000);
    expect([a.isVisible(), claim?.isHeld()]).toEqual([false, false]);
    wire.fail('none');
    await expect.poll(() => [a.isVisible(), claim?.isHeld()]).toEqual([true, true]);
  });

  it('leak no session when joining fails (SYS-4)', async () => {
    const ledger = await openLedger('PostgreSQL', { busyTimeoutMs: 50 });
    const admin = await adminOf(ledger.location);
    const replicas = createReplicas(ledger.store.db);
    onTestFinished(() => replicas.stop());
    const sessions = async () => {
      const { rows } = await admin.query<{ pid: number }>(
        `select pid from pg_stat_activity
         where application_name = 'writ ledger' and datname = current_database()`,
      );
      return rows.map(({ pid }) => pid);
    };
    // Sessions of earlier tests may still be closing.
    const before = new Set(await sessions());
    const opened = async () => (await sessions()).filter((pid) => !before.has(pid));
    await admin.query(`select pg_advisory_lock(${LOCK_OF(`replica ${replicas.id}`)})`);
    for (let tries = 0; tries < 3; tries += 1) {
      await expect(replicas.start()).rejects.toMatchObject({ reason: 'STORE_BUSY' });
    }
    // Sessions are closed at once, long before the idle timeout of the server ends them.
    await expect.poll(opened, { timeout: 10_000 }).toEqual([]);
  });
});
