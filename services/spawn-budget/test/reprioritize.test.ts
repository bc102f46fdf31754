import { RenewIntent } from '@writ/contracts/writ/spawn/v1/spawn_budget_service_pb';
import { Priority } from '@writ/kernel';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { stateOf, TestRun } from './test-run.ts';
import { World } from './world.ts';

describe('a reprioritization', () => {
  let world: World;
  let run: TestRun;
  beforeAll(async () => {
    world = await World.start();
  });
  afterAll(() => world.stop());
  beforeEach(() => {
    run = new TestRun(world);
  });

  it('below NORMAL pauses an agent of a full pool until the next release (SB-5)', async () => {
    await run.open({ maxAgents: 3 });
    await run.acquire('a', Priority.HIGH);
    await run.acquire('b');
    const { slot, changes } = await run.reprioritize('a', Priority.LOW);
    expect(stateOf(slot)).toBe('PAUSED');
    expect(slot?.grant).toBe('');
    expect(changes).toMatchObject([{ agent: { instance: 'a' } }]);
    expect(changes[0]?.becauseOf).toBeUndefined();
    // No agent was queued, so the slot stays free and the paused agent does not take it back.
    expect(await run.pool()).toMatchObject({ held: 2, paused: ['a'] });
    expect(await run.renew('a')).toBe('PAUSED');
    await run.release('b');
    expect(await run.pool()).toMatchObject({ held: 2, holders: ['root', 'a'], paused: [] });
  });

  it('below NORMAL gives the slot to the first queued agent (SB-5)', async () => {
    await run.open({ maxAgents: 2 });
    await run.acquire('low', Priority.LOW);
    await run.acquire('high', Priority.HIGH);
    const { changes } = await run.reprioritize('high', Priority.BACKGROUND);
    expect(changes).toMatchObject([
      { agent: { instance: 'high' }, becauseOf: { instance: 'low' } },
      { agent: { instance: 'low' }, becauseOf: { instance: 'high' } },
    ]);
    expect(await run.pool()).toMatchObject({ held: 2, holders: ['root', 'low'], paused: ['high'] });
  });

  it('below NORMAL pauses no agent while a slot is free, and never the root (SB-1, SB-5)', async () => {
    await run.open({ maxAgents: 2 });
    expect(stateOf((await run.reprioritize('root', Priority.LOW)).slot)).toBe('ACTIVE');
    await run.acquire('a');
    expect(stateOf((await run.reprioritize('root', Priority.BACKGROUND)).slot)).toBe('ACTIVE');
    await run.release('a');
    await run.acquire('b', Priority.HIGH);
    const wide = new TestRun(world);
    await wide.open({ maxAgents: 3 });
    await wide.acquire('a');
    expect(stateOf((await wide.reprioritize('a', Priority.BACKGROUND)).slot)).toBe('ACTIVE');
  });

  it('below NORMAL keeps an agent paused only while another agent of the run is active (SB-5)', async () => {
    await run.open({ maxAgents: 3 });
    await run.acquire('a');
    await run.acquire('b');
    await run.reprioritize('a', Priority.LOW);
    await run.renew('b', RenewIntent.SUSPEND);
    expect((await run.pool()).paused).toEqual(['a']);
    await run.renew('root', RenewIntent.SUSPEND);
    expect(await run.pool()).toMatchObject({ held: 3, paused: [] });
  });

  it('to NORMAL resumes a paused agent if a slot is free (SB-5)', async () => {
    await run.open({ maxAgents: 3 });
    await run.acquire('a');
    await run.acquire('b');
    await run.reprioritize('a', Priority.LOW);
    const { slot } = await run.reprioritize('a', Priority.NORMAL);
    expect(stateOf(slot)).toBe('ACTIVE');
    expect(slot?.grant).not.toBe('');
  });

  it('to HIGH resumes a paused agent by pausing an agent of lower priority (SB-5)', async () => {
    await run.open({ maxAgents: 3 });
    await run.acquire('a', Priority.LOW);
    await run.acquire('b', Priority.LOW);
    await run.acquire('high', Priority.HIGH);
    const { slot, changes } = await run.reprioritize('a', Priority.HIGH);
    expect(stateOf(slot)).toBe('ACTIVE');
    expect(changes).toMatchObject([
      { agent: { instance: 'b' }, becauseOf: { instance: 'a' } },
      { agent: { instance: 'a' }, becauseOf: { instance: 'b' } },
    ]);
    expect(await run.pool()).toMatchObject({ held: 3, paused: ['b'] });
  });

  it('to NORMAL queues a paused agent first if no slot is free (SB-5)', async () => {
    await run.open({ maxAgents: 3 });
    await run.acquire('normal', Priority.NORMAL);
    await run.acquire('low', Priority.LOW);
    await run.acquire('c-1', Priority.CRITICAL);
    await run.acquire('c-2', Priority.CRITICAL);
    expect((await run.pool()).paused).toEqual(['normal', 'low']);
    expect(stateOf((await run.reprioritize('low', Priority.NORMAL)).slot)).toBe('PAUSED');
    expect((await run.pool()).paused).toEqual(['low', 'normal']);
    await run.release('c-1');
    expect((await run.pool()).holders).toEqual(['root', 'low', 'c-2']);
  });

  it('of an unknown or released agent is rejected (SB-5)', async () => {
    await run.open();
    await run.acquire('a');
    await run.release('a');
    await expect(run.reprioritize('ghost', Priority.LOW)).rejects.toMatchObject({
      reason: 'AGENT_NOT_FOUND',
    });
    await expect(run.reprioritize('a', Priority.LOW)).rejects.toMatchObject({
      reason: 'AGENT_RELEASED',
    });
  });
});
