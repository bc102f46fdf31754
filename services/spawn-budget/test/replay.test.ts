import { HookEventType } from '@writ/contracts/writ/hook/v1/hook_event_pb';
import { Priority, systemClock } from '@writ/kernel';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { acquireChild, openPoolReplica } from './pool-replica.ts';
import { stateOf, TestRun } from './test-run.ts';
import { World } from './world.ts';

describe('a repeated request', () => {
  let world: World;
  let run: TestRun;
  beforeAll(async () => {
    world = await World.start({ durable: true });
  });
  afterAll(() => world.stop());
  beforeEach(() => {
    run = new TestRun(world);
  });

  it('acquires no second slot and reports the same pause as the first call (SB-9)', async () => {
    await run.open({ maxAgents: 2 });
    await run.acquire('low', Priority.LOW);
    const first = await run.acquire('high', Priority.HIGH);
    const second = await run.acquire('high', Priority.HIGH);
    expect(second.changes).toEqual(first.changes);
    expect(stateOf(second.slot)).toBe('ACTIVE');
    expect(await run.pool()).toMatchObject({ held: 2, totalSpawns: 2, totalPauses: 1 });
  });

  it('returns the current state of the agent, never the old grant (SB-9)', async () => {
    await run.open({ maxAgents: 2 });
    const before = await run.acquire('low', Priority.LOW);
    expect(before.slot?.grant).not.toBe('');
    world.advance(1_000);
    const again = await run.acquire('low', Priority.LOW);
    expect(again.slot?.grant).not.toBe('');
    expect(again.slot?.grant).not.toBe(before.slot?.grant);
    await run.acquire('high', Priority.HIGH);
    const paused = await run.acquire('low', Priority.LOW);
    expect(stateOf(paused.slot)).toBe('PAUSED');
    expect(paused.slot?.grant).toBe('');
    await run.release('low');
    expect(stateOf((await run.acquire('low', Priority.LOW)).slot)).toBe('RELEASED');
    expect(await run.pool()).toMatchObject({ totalSpawns: 2 });
  });

  it('is refused again if the first request was refused, even if a slot is free by then (SB-9)', async () => {
    await run.open({ maxAgents: 2 });
    await run.acquire('a');
    const refusal = { reason: 'BUDGET_EXHAUSTED', metadata: { cap: 'max_agents' } };
    await expect(run.acquire('b')).rejects.toMatchObject(refusal);
    await run.release('a');
    await expect(run.acquire('b')).rejects.toMatchObject(refusal);
    expect((await run.pool()).totalRefusals).toBe(1);
    expect(stateOf((await run.acquire('b', Priority.NORMAL, { requestId: 'new' })).slot)).toBe(
      'ACTIVE',
    );
  });

  it('of a release or a reprioritization returns the slot changes of the first call (SB-9)', async () => {
    await run.open({ maxAgents: 2 });
    await run.acquire('low', Priority.LOW);
    await run.acquire('high', Priority.HIGH);
    const released = await run.release('high');
    expect(await run.release('high')).toEqual(released);
    const weighed = await run.reprioritize('low', Priority.HIGH);
    await run.reprioritize('low', Priority.CRITICAL);
    const again = await run.reprioritize('low', Priority.HIGH);
    expect(again.changes).toEqual(weighed.changes);
    expect(again.slot?.priority).toBe(5);
  });

  it('with different content is rejected (SB-9)', async () => {
    await run.open({ maxAgents: 3 });
    const reused = { kind: 'invalid_argument', reason: 'REQUEST_ID_REUSED' };
    await expect(run.open({ maxAgents: 4 })).rejects.toMatchObject(reused);
    await expect(run.open({ maxAgents: 4 }, { requestId: 'other' })).rejects.toMatchObject({
      reason: 'POOL_EXISTS',
    });
    await run.acquire('a');
    await expect(run.acquire('a', Priority.HIGH)).rejects.toMatchObject(reused);
    expect(stateOf(await run.open({ maxAgents: 3 }))).toBe('ACTIVE');
  });

  it('gets the recorded slot changes even after a restart (SB-6, SB-9)', async () => {
    await run.open({ maxAgents: 3, maxTotalSpawns: 3, maxDepth: 2 });
    await run.acquire('low', Priority.LOW);
    await run.acquire('a');
    const high = await run.acquire('high', Priority.HIGH);
    await run.renew('a', undefined, 9n);
    const before = await run.pool();
    await world.restart();
    expect(await run.pool()).toEqual(before);
    expect(await run.renew('a', undefined, 8n)).toBe('STALE_EPOCH');
    expect((await run.acquire('high', Priority.HIGH)).changes).toEqual(high.changes);
    await expect(run.acquire('b')).rejects.toMatchObject({
      metadata: { cap: 'max_total_spawns' },
    });
    await run.release('high');
    expect((await run.pool()).holders).toEqual(['root', 'low', 'a']);
  });
});

describe('two replicas on one database', () => {
  let world: World;
  beforeAll(async () => {
    world = await World.start({ durable: true, clock: systemClock });
  });
  afterAll(() => world.stop());

  it('share the cap (SB-6)', async () => {
    const run = new TestRun(world);
    const replica = await world.startReplica();
    await run.open({ maxAgents: 5 });
    const outcomes: string[] = [];
    for (let index = 0; index < 8; index += 1) {
      const client = index % 2 === 0 ? replica : world.supervisor;
      const outcome = await run.acquire(`a-${index}`, Priority.NORMAL, { client }).then(
        ({ slot }) => stateOf(slot),
        ({ reason }) => reason,
      );
      outcomes.push(outcome);
    }
    expect(outcomes.filter((outcome) => outcome === 'ACTIVE')).toHaveLength(4);
    await run.release('a-0');
    expect(await run.pool(replica)).toEqual(await run.pool());
    expect((await run.pool(replica)).held).toBe(4);
  });

  it('publish the events that a crashed replica committed (HK-2)', async () => {
    const run = new TestRun(world);
    await run.open({ maxAgents: 2 });
    await run.acquire('low', Priority.LOW);
    // Commits the pause, and crashes before its relay publishes the event.
    const crashed = await openPoolReplica(world.location);
    await acquireChild(crashed.repository, run.id, 'high', Priority.HIGH);
    await crashed.store.close();
    await world.until((events) => events.some(({ runId }) => runId === run.runId));
    const published = world.events.filter(({ runId }) => runId === run.runId);
    expect(published).toMatchObject([
      { type: HookEventType.AGENT_PAUSED, agent: { instance: 'low' } },
    ]);
  });
});
