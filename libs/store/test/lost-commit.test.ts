import { type FaultProxy, startFaultProxy } from '@writ/testing/faults';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { Store, StoreLimits, StoreLocation } from '../src/index.ts';
import { balance, type HeldCommit, holdCommits, writeOnce } from './held-commit.ts';
import { entry, insertAhead, type LedgerDatabase } from './ledger.ts';
import { emptyLocation, entryIds, openLedgerAt, PLACES } from './open-ledger.ts';

interface LostCommitSetup {
  /** A store whose connection can be cut. */
  readonly store: Store<LedgerDatabase>;
  /** Another replica with a working connection. */
  readonly beside: Store<LedgerDatabase>;
  readonly wire: FaultProxy;
  readonly held: HeldCommit;
  /** Cuts existing connections; new ones succeed. */
  cut(): void;
}

async function setUp(limits: Partial<StoreLimits> = {}): Promise<LostCommitSetup> {
  const location: StoreLocation = await emptyLocation('PostgreSQL');
  if (location.dialect !== 'postgres') throw new Error('unreachable');
  const { host } = new URL(location.url);
  const wire = await startFaultProxy(host);
  onTestFinished(() => wire.close());
  const { store: beside } = await openLedgerAt(location);
  const url = location.url.replace(host, wire.address);
  const { store } = await openLedgerAt({ ...location, url }, limits);
  const held = await holdCommits(beside, location.url, location.schema);
  const cut = () => {
    wire.fail('down');
    wire.fail('none');
  };
  return { store, beside, wire, held, cut };
}

const UNKNOWN = { kind: 'unavailable', reason: 'STORE_COMMIT_UNKNOWN' };
const FAILED = { kind: 'unavailable', reason: 'STORE_COMMIT_FAILED' };

describe.runIf(PLACES.includes('PostgreSQL'))('a COMMIT whose connection is lost', () => {
  it('succeeds if the server has committed and only the response was lost (SYS-4)', async () => {
    const { store, beside, wire, held, cut } = await setUp();
    const writing = writeOnce(store, 'a');
    await held.arrived();
    wire.fail('stalled');
    await held.release();
    await expect.poll(() => entryIds(beside)).toEqual(['a']);
    await expect.poll(() => wire.held).toBeGreaterThan(0);
    cut();
    await writing;
    expect(await balance(store)).toBe(1n);
  });

  it('fails and stores nothing if it never reached the server (SYS-4)', async () => {
    const { store, beside, wire, held, cut } = await setUp();
    await held.release();
    await writeOnce(store, 'before');
    const writing = store.transaction(async (trx) => {
      await trx.deleteFrom('entry').execute();
      wire.fail('stalled');
    });
    const outcome = expect(writing).rejects.toMatchObject(FAILED);
    await expect.poll(() => wire.held).toBeGreaterThan(0);
    cut();
    await outcome;
    expect(await entryIds(beside)).toEqual(['before']);
    await writeOnce(store, 'after');
    expect(await entryIds(beside)).toEqual(['after', 'before']);
  });

  it('succeeds if the server executed all statements and committed, and all responses were lost (SYS-4)', async () => {
    const { store, beside, wire, held, cut } = await setUp();
    await held.release();
    await writeOnce(store, 'before');
    await held.admin.query('begin; lock table entry in exclusive mode');
    const writing = store.transaction((trx) => insertAhead(trx, entry('a')));
    const blocked = async () =>
      (await held.admin.query("select 1 from pg_locks where not granted and locktype = 'relation'"))
        .rowCount;
    await expect.poll(blocked).toBe(1);
    wire.fail('stalled');
    await held.admin.query('commit');
    await expect.poll(() => entryIds(beside)).toEqual(['a', 'before']);
    await expect.poll(() => wire.held).toBeGreaterThan(0);
    cut();
    await writing;
  });

  it('fails and stores nothing if neither it nor the preceding statements reached the server (SYS-4)', async () => {
    const { store, beside, wire, held, cut } = await setUp();
    await held.release();
    await writeOnce(store, 'before');
    const writing = store.transaction(async (trx) => {
      await trx.selectFrom('entry').select('id').execute();
      wire.fail('stalled');
      await insertAhead(trx, entry('a'));
    });
    const outcome = expect(writing).rejects.toMatchObject(FAILED);
    await expect.poll(() => wire.held).toBeGreaterThan(0);
    cut();
    await outcome;
    expect(await entryIds(beside)).toEqual(['before']);
  });

  it('has an unknown outcome while the server is unreachable, and a retry has no second effect (SYS-4)', async () => {
    const { store, beside, wire, held } = await setUp();
    const writing = writeOnce(store, 'a');
    const outcome = expect(writing).rejects.toMatchObject(UNKNOWN);
    await held.arrived();
    wire.fail('down');
    await outcome;
    await held.release();
    await expect.poll(() => entryIds(beside)).toEqual(['a']);
    await expect(writeOnce(store, 'a')).rejects.toMatchObject({ reason: 'STORE_UNREACHABLE' });
    wire.fail('none');
    await writeOnce(store, 'a');
    expect([await entryIds(store), await balance(store)]).toEqual([['a'], 1n]);
  });

  it('has the same outcome for all transactions of the commit', async () => {
    const { store, beside, wire, held } = await setUp({ maxBatchMs: 60_000 });
    const writing = ['a', 'b', 'c'].map((id) => writeOnce(store, id));
    const outcomes = Promise.allSettled(writing);
    await held.arrived();
    wire.fail('down');
    for (const outcome of await outcomes) expect(outcome).toMatchObject({ reason: UNKNOWN });
    await held.release();
    await expect.poll(() => entryIds(beside)).toEqual(['a', 'b', 'c']);
    wire.fail('none');
    await Promise.all(['a', 'b', 'c'].map((id) => writeOnce(store, id)));
    expect(await balance(store)).toBe(3n);
  });
});
