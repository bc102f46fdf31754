import { Priority } from '@writ/kernel';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { stateOf, TestRun } from './test-run.ts';
import { World } from './world.ts';

describe('a slot', () => {
  let world: World;
  let run: TestRun;
  beforeAll(async () => {
    world = await World.start();
  });
  afterAll(() => world.stop());
  beforeEach(() => {
    run = new TestRun(world);
  });

  it('is held by the root from the start, with a lease and a grant (SB-1, SB-4)', async () => {
    const slot = await run.open({ maxAgents: 2 });
    expect(stateOf(slot)).toBe('ACTIVE');
    expect(slot?.grant).not.toBe('');
    expect(await run.pool()).toMatchObject({ held: 1, holders: ['root'] });
  });

  it('is one of at most 50 per run by default (SB-1)', async () => {
    await run.open({});
    const pool = await run.pool();
    expect(pool.budget).toMatchObject({ maxAgents: 50, allowPreempt: true });
  });

  it('is granted at any priority below the cap (SB-2)', async () => {
    await run.open({ maxAgents: 3 });
    expect(stateOf((await run.acquire('a', Priority.BACKGROUND)).slot)).toBe('ACTIVE');
    expect(stateOf((await run.acquire('b', Priority.CRITICAL)).slot)).toBe('ACTIVE');
    expect(await run.pool()).toMatchObject({ held: 3, holders: ['root', 'a', 'b'] });
  });

  it('is refused to a NORMAL agent at the cap, with a message that names the cap (SB-2)', async () => {
    await run.open({ maxAgents: 2 });
    await run.acquire('a', Priority.LOW);
    await expect(run.acquire('b', Priority.NORMAL)).rejects.toMatchObject({
      kind: 'resource_exhausted',
      reason: 'BUDGET_EXHAUSTED',
      message:
        'Spawn budget exceeded: all 2 slots of the run (max_agents) are held, and a NORMAL agent cannot preempt.',
      metadata: { dimension: 'spawns', cap: 'max_agents', why: 'full', used: '2', limit: '2' },
    });
    const pool = await run.pool();
    expect(pool).toMatchObject({ held: 2, totalSpawns: 1, totalRefusals: 1 });
  });

  it('is given to a HIGH agent by pausing the agent of lowest priority that acquired first (SB-2)', async () => {
    await run.open({ maxAgents: 4 });
    await run.acquire('normal', Priority.NORMAL);
    await run.acquire('low-1', Priority.LOW);
    await run.acquire('low-2', Priority.LOW);
    const { changes } = await run.acquire('high', Priority.HIGH);
    expect(changes).toMatchObject([
      { agent: { instance: 'low-1' }, becauseOf: { instance: 'high' } },
    ]);
    expect(await run.pool()).toMatchObject({
      held: 4,
      holders: ['root', 'normal', 'low-2', 'high'],
      paused: ['low-1'],
      totalPauses: 1,
    });
  });

  it('is never taken from the root or an agent of equal priority (SB-1, SB-2)', async () => {
    await run.open({ maxAgents: 2 }, { priority: Priority.BACKGROUND });
    await run.acquire('a', Priority.CRITICAL);
    await expect(run.acquire('b', Priority.CRITICAL)).rejects.toMatchObject({
      metadata: { cap: 'max_agents', why: 'no_lower_priority' },
    });
  });

  it('is refused to a CRITICAL agent in a full pool if preemption is disabled (SB-2)', async () => {
    await run.open({ maxAgents: 2, allowPreempt: false });
    await run.acquire('a', Priority.BACKGROUND);
    await expect(run.acquire('b', Priority.CRITICAL)).rejects.toMatchObject({
      metadata: { cap: 'max_agents', why: 'preemption_off' },
    });
  });

  it('is assigned on release to the queued agent of highest priority (SB-3, SB-4)', async () => {
    await run.open({ maxAgents: 3 });
    await run.acquire('low', Priority.LOW);
    await run.acquire('normal', Priority.NORMAL);
    await run.acquire('high-1', Priority.HIGH);
    await run.acquire('high-2', Priority.HIGH);
    expect(await run.pool()).toMatchObject({ paused: ['normal', 'low'] });
    expect(await run.release('high-1')).toMatchObject({
      released: true,
      changes: [{ agent: { instance: 'normal' }, becauseOf: { instance: 'high-1' } }],
    });
    await run.release('high-2');
    expect(await run.pool()).toMatchObject({ held: 3, paused: [] });
  });

  it('is not released twice, for an unknown agent, or for the root (SB-1, SB-3)', async () => {
    await run.open({ maxAgents: 2 });
    await run.acquire('a');
    expect((await run.release('a')).released).toBe(true);
    expect((await run.release('a', 'again')).released).toBe(false);
    expect((await run.release('ghost')).released).toBe(false);
    expect((await run.release('root')).released).toBe(false);
    expect(await run.pool()).toMatchObject({ held: 1, holders: ['root'] });
  });

  it('is not freed by the release of a paused agent (SB-6)', async () => {
    await run.open({ maxAgents: 2 });
    await run.acquire('low', Priority.LOW);
    await run.acquire('high', Priority.HIGH);
    expect(await run.release('low')).toMatchObject({ released: true, changes: [] });
    expect(await run.pool()).toMatchObject({ held: 2, holders: ['root', 'high'] });
    await expect(run.acquire('next')).rejects.toMatchObject({ reason: 'BUDGET_EXHAUSTED' });
  });

  it('is refused past max_total_spawns regardless of releases (SB-7)', async () => {
    await run.open({ maxTotalSpawns: 1 });
    await run.acquire('a');
    await run.release('a');
    await expect(run.acquire('b')).rejects.toMatchObject({
      metadata: { cap: 'max_total_spawns', used: '1', limit: '1' },
    });
  });

  it('is refused to an agent deeper than max_depth (SB-7)', async () => {
    await run.open({ maxDepth: 1 });
    await run.acquire('a');
    await expect(run.acquire('b', Priority.CRITICAL, { depth: 2 })).rejects.toMatchObject({
      metadata: { cap: 'max_depth', used: '2', limit: '1' },
    });
  });

  it('is refused after the close of the run, even if the close preceded the open (SUP-8)', async () => {
    const late = new TestRun(world);
    expect((await late.close()).pool?.closed).toBe(true);
    await expect(late.open()).rejects.toMatchObject({ reason: 'POOL_CLOSED' });
    await run.open();
    await run.acquire('a');
    expect((await run.close()).pool).toMatchObject({ held: 0, closed: true });
    expect((await run.close()).pool).toMatchObject({ held: 0, closed: true });
    await expect(run.acquire('b')).rejects.toMatchObject({ reason: 'POOL_CLOSED' });
  });
});
