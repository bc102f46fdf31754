import { ManualClock, type RunKey } from '@writ/kernel';
import { createTelemetry } from '@writ/telemetry';
import { expect, it, onTestFinished } from 'vitest';
import { closePool } from '../src/app/pool/open-pool.ts';
import { PauseFeed } from '../src/app/pool/pause-feed.ts';
import { PoolRepository } from '../src/app/pool/pool-repository.ts';
import { createSlotReclaimer } from '../src/app/pool/reclaim-slots.ts';
import { createSpawnEvents } from '../src/events.ts';
import { findAnswers } from '../src/store/requests.ts';
import type { SpawnStore } from '../src/store/spawn-store.ts';
import { acquireChild, openPoolOf, openPoolReplica } from './pool-replica.ts';
import { TestRun } from './test-run.ts';
import { World } from './world.ts';

it('keeps the pool of an ended run for the retention time, then deletes it with its recorded answers', async () => {
  const world = await World.start({ config: { sweepMs: 1, keepClosedMs: 60_000 } });
  const run = new TestRun(world);
  await run.open();
  await run.acquire('a');
  await run.close();
  world.advance(59_000);
  expect((await run.pool()).closed).toBe(true);
  world.advance(2_000);
  const notFound = { reason: 'POOL_NOT_FOUND' };
  await expect.poll(() => run.pool().catch(({ reason }) => ({ reason }))).toEqual(notFound);
  // The request ids were deleted with the pool, so the same requests for the same run id are new requests.
  await run.open();
  await run.acquire('a');
  await world.stop();
});

async function openReplica() {
  const replica = await openPoolReplica({ dialect: 'sqlite', file: ':memory:' });
  onTestFinished(() => replica.store.close());
  return replica;
}

async function close(repository: PoolRepository, run: RunKey): Promise<void> {
  const request = { ...run, requestId: 'close', digest: '', traceparent: '', sessionId: '' };
  await closePool(repository, request, false);
}

/** Starts a sweep of the pools of a store every 5 ms, with a clock that is one hour ahead. */
function sweepLater(store: SpawnStore): void {
  const clock = new ManualClock(new Date(Date.now() + 3_600_000));
  const telemetry = createTelemetry({ service: 'test', logLevel: 'silent' });
  const repository = new PoolRepository({
    store,
    clock,
    leaseMs: 600_000,
    events: createSpawnEvents(telemetry),
    feed: new PauseFeed(),
    onEvents: () => undefined,
  });
  const limits = { sweepMs: 5, keepClosedMs: 60_000, isClockSkewed: () => false };
  const { log } = telemetry;
  const reclaimer = createSlotReclaimer({ store, repository, clock, log, ...limits });
  onTestFinished(() => reclaimer.stop());
  reclaimer.start();
}

it('ends leases and deletes ended pools although another pool is corrupt (SB-8)', async () => {
  const { store, repository } = await openReplica();
  for (const runId of ['run-1', 'run-2', 'run-3']) {
    const run = { tenant: 'acme', runId };
    await openPoolOf(repository, run, 3);
    await acquireChild(repository, run, 'a');
  }
  await close(repository, { tenant: 'acme', runId: 'run-3' });
  await store.transaction((trx) =>
    trx.updateTable('members').set({ state: 'corrupt' }).where('run_id', '=', 'run-1').execute(),
  );
  sweepLater(store);
  const children = () =>
    store.db
      .selectFrom('members')
      .select(['run_id', 'state'])
      .where('instance', '=', 'a')
      .orderBy('run_id')
      .execute();
  await expect.poll(children).toEqual([
    { run_id: 'run-1', state: 'corrupt' },
    { run_id: 'run-2', state: 'waiting' },
  ]);
});

it('caches no answers of a run whose pool is closed (CO-2)', async () => {
  const { store, repository } = await openReplica();
  const run = { tenant: 'acme', runId: 'run-1' };
  await openPoolOf(repository, run, 3);
  await acquireChild(repository, run, 'a');
  await close(repository, run);
  const key = { ...run, instance: 'a', rpc: 'acquire', requestId: 'a', digest: 'a' } as const;
  const answers = await store.transaction(async (trx) => {
    await trx.deleteFrom('requests').execute();
    return await findAnswers(trx, key);
  });
  expect(answers.any).toBe(false);
});
