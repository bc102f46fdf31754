import { timestampMs } from '@bufbuild/protobuf/wkt';
import { RenewIntent } from '@writ/contracts/writ/spawn/v1/spawn_budget_service_pb';
import { Priority } from '@writ/kernel';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { stateOf, TestRun } from './test-run.ts';
import { World } from './world.ts';

const { RUN, SUSPEND, PARK } = RenewIntent;
const LEASE_MS = 15_000;

describe('a renewal', () => {
  let world: World;
  let run: TestRun;
  beforeAll(async () => {
    // The sweep does not run during the test, so only calls end expired leases.
    world = await World.start({ config: { sweepMs: 3_600_000 } });
  });
  afterAll(() => world.stop());
  beforeEach(() => {
    run = new TestRun(world);
  });

  const renewed = async (instance: string, intent: RenewIntent = RUN, epoch = 1n) => {
    const { agents } = await world.worker.renew({
      agents: [await run.renewal(instance, intent, epoch)],
    });
    return agents[0]?.slot;
  };

  it('extends the lease and returns a grant of five seconds that ends before the lease (SB-4, SB-8)', async () => {
    await run.open();
    await run.acquire('a', Priority.HIGH);
    world.advance(10_000);
    const slot = await renewed('a', RUN, 7n);
    const now = world.clock.now().getTime();
    expect(slot?.leaseExpireTime && timestampMs(slot.leaseExpireTime)).toBe(now + LEASE_MS);
    expect(slot?.grantExpireTime && timestampMs(slot.grantExpireTime)).toBe(now + 5_000);
    const { claims, expireTime } = await world.readGrant(slot?.grant);
    expect(claims).toMatchObject({ ...run.id, agentInstance: 'a', priority: 4, epoch: 7n });
    expect(expireTime.getTime()).toBe(now + 5_000);
    world.advance(10_000);
    expect((await run.pool()).holders).toContain('a');
  });

  it('that is late finds the slot given to the first queued agent (SB-8)', async () => {
    await run.open({ maxAgents: 2 });
    await run.acquire('low', Priority.LOW);
    await run.acquire('high', Priority.HIGH);
    world.advance(LEASE_MS);
    expect(await run.pool()).toMatchObject({
      held: 2,
      holders: ['root', 'low'],
      paused: [],
      waiting: ['high'],
    });
    // HIGH preempts like an acquire; LOW is only queued.
    expect(await run.renew('high')).toBe('ACTIVE');
    expect(await run.renew('low')).toBe('PAUSED');
    expect(await run.pool()).toMatchObject({ holders: ['root', 'high'], paused: ['low'] });
  });

  it('queues an agent that returns to a full pool until the next release (SB-8)', async () => {
    await run.open({ maxAgents: 2 });
    await run.acquire('late');
    world.advance(LEASE_MS);
    await run.acquire('next');
    expect(await run.renew('late')).toBe('WAITING');
    expect(await run.renew('late', PARK)).toBe('WAITING');
    await run.release('next');
    expect(await run.renew('late', PARK)).toBe('ACTIVE');
  });

  it('keeps the slot of a suspended agent without lease and grant (SB-8)', async () => {
    await run.open({ maxAgents: 2 });
    await run.acquire('a', Priority.LOW);
    const asleep = await renewed('a', SUSPEND);
    expect(stateOf(asleep)).toBe('SUSPENDED');
    expect(asleep?.grant).toBe('');
    expect(asleep?.leaseExpireTime).toBeUndefined();
    world.advance(24 * 3_600_000);
    // Its slot cannot be preempted, because it is not active.
    await expect(run.acquire('b', Priority.CRITICAL)).rejects.toMatchObject({
      metadata: { why: 'no_lower_priority' },
    });
    expect(await run.renew('a')).toBe('ACTIVE');
  });

  it('returns no grant after the deadline of the run, when only the root keeps its slot (SB-8)', async () => {
    const deadline = new Date(world.clock.now().getTime() + 8_000);
    await run.open({ maxAgents: 3 }, { deadline });
    await run.acquire('asleep');
    await run.acquire('awake');
    await run.renew('asleep', SUSPEND);
    world.advance(6_000);
    // The grant ends at the deadline.
    const slot = await renewed('awake');
    expect((await world.readGrant(slot?.grant)).expireTime).toEqual(deadline);
    world.advance(2_000);
    expect(await run.pool()).toMatchObject({ held: 1, holders: ['root'] });
    expect(await run.renew('awake')).toBe('WAITING');
    const root = await renewed('root');
    expect(stateOf(root)).toBe('SUSPENDED');
    expect(root?.grant).toBe('');
    await expect(run.acquire('b')).rejects.toMatchObject({ reason: 'DEADLINE_PASSED' });
  });

  it('reactivates the root after its lease expired (SB-1, SB-8)', async () => {
    await run.open({ maxAgents: 1 });
    world.advance(60_000);
    expect((await run.pool()).holders).toEqual(['root']);
    const root = await renewed('root');
    expect(stateOf(root)).toBe('ACTIVE');
    expect(root?.grant).not.toBe('');
  });

  it('returns no grant to a paused agent for any intent (SB-4)', async () => {
    await run.open({ maxAgents: 2 });
    await run.acquire('low', Priority.LOW);
    await run.acquire('high', Priority.HIGH);
    for (const intent of [RUN, SUSPEND, PARK]) {
      const slot = await renewed('low', intent);
      expect(stateOf(slot)).toBe('PAUSED');
      expect(slot?.grant).toBe('');
    }
  });

  it('with a stale epoch is rejected and does not affect the owner (RT-2)', async () => {
    await run.open();
    await run.acquire('a');
    expect(await run.renew('a', RUN, 5n)).toBe('ACTIVE');
    expect(await run.renew('a', RUN, 4n)).toBe('STALE_EPOCH');
    expect(await run.renew('a', SUSPEND, 4n)).toBe('STALE_EPOCH');
    expect(await run.renew('a', RUN, 5n)).toBe('ACTIVE');
  });

  it('renews agents of many runs in one call, each with its own result in order (SB-8)', async () => {
    const other = new TestRun(world, 'globex');
    await run.open();
    await other.open();
    await run.acquire('a');
    await other.acquire('a');
    await run.renew('a', RUN, 3n);
    const { agentToken } = await run.renewal('a');
    const { agents } = await world.worker.renew({
      agents: [
        await other.renewal('a', SUSPEND),
        await run.renewal('a', RUN, 2n),
        await run.renewal('ghost'),
        { agentToken: `${agentToken}x`, epoch: 9n, intent: RUN },
        await new TestRun(world).renewal('root'),
        await run.renewal('root'),
      ],
    });
    expect(agents.map(({ slot, refusal }) => refusal || stateOf(slot))).toEqual([
      'SUSPENDED',
      'STALE_EPOCH',
      'UNKNOWN_AGENT',
      'TOKEN_INVALID',
      'UNKNOWN_AGENT',
      'ACTIVE',
    ]);
    expect(agents.map(({ runId }) => runId).slice(0, 3)).toEqual([
      other.runId,
      run.runId,
      run.runId,
    ]);
    expect(stateOf((await run.acquire('a')).slot)).toBe('ACTIVE');
  });

  it('returns the state at the end of the batch if a later entry took the slot (SB-4)', async () => {
    await run.open({ maxAgents: 2 });
    await run.acquire('high', Priority.HIGH);
    world.advance(LEASE_MS);
    await run.acquire('low', Priority.LOW);
    const { agents } = await world.worker.renew({
      agents: [await run.renewal('low'), await run.renewal('high')],
    });
    expect(agents.map(({ slot }) => stateOf(slot))).toEqual(['PAUSED', 'ACTIVE']);
    expect(agents[0]?.slot?.grant).toBe('');
  });

  it('reports a released agent as released (SB-3)', async () => {
    await run.open();
    await run.acquire('a');
    await run.release('a');
    expect(await run.renew('a')).toBe('RELEASED');
    await expect(run.acquire('a', Priority.NORMAL, { requestId: 'again' })).rejects.toMatchObject({
      reason: 'AGENT_RELEASED',
    });
  });
});
