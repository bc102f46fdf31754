import { ManualClock } from '@writ/kernel';
import { describe, expect, it, vi } from 'vitest';
import { openWorkerStore } from '../src/store/worker-store.ts';
import { InterceptedStore } from './intercepted-store.ts';
import { World } from './world.ts';

const ESCALATE =
  '{"kind":"tool","name":"issue_refund","args":{"user_id":42,"amount_usd":1200,"reason":"x"}}';

/** Owner of a lease: the worker id and the id of one of its processes. */
const PROCESS_OF_A = expect.stringMatching(/^worker-a\/[0-9a-f]{16}$/);

describe('a delivered agent', () => {
  /** Starts a worker whose process dies between the commit of the delivery and the agent's start. */
  async function dieAfterDelivery(world: World): Promise<void> {
    const { promise: died, resolve } = Promise.withResolvers<void>();
    const after = async () => {
      resolve();
      await world.faults.untilReleased();
      throw new Error('The worker is dead.');
    };
    await world.startWorker(
      // The delivery occupies the only session, so the dead worker claims no other agent.
      { workerId: 'worker-a', leaseTtlMs: 60_000, maxConcurrentAgents: 1 },
      {
        openStore: async (location) =>
          new InterceptedStore(await openWorkerStore(location), { after }),
      },
    );
    world.deliver().catch(() => undefined);
    await died;
    const { store } = world.lastWorker;
    const [row] = await store.db.selectFrom('agents').selectAll().execute();
    expect(row).toMatchObject({ epoch: 1n, lease_owner: PROCESS_OF_A, state: 'RUNNING' });
    expect(world.meter.requests).toEqual([]);
  }

  it('runs under the lease that its delivery committed (RT-2, RT-3)', async () => {
    const world = await World.start({ model: () => ESCALATE });
    const { reached, release } = world.faults.holdAt('before generate op-1');
    const { store } = await world.startWorker({ workerId: 'worker-a' });
    await world.deliver();
    await reached;
    const [row] = await store.db.selectFrom('agents').selectAll().execute();
    expect(row).toMatchObject({ epoch: 1n, lease_owner: PROCESS_OF_A });
    release();
    expect((await world.until('SUSPENDED')).epoch).toBe(1n);
  });

  it('is reclaimed by the next process if its worker dies before the start (RT-2, RT-3)', async () => {
    const world = await World.start({ model: () => ESCALATE, inFile: true });
    await dieAfterDelivery(world);
    await world.startWorker({ workerId: 'worker-a', leaseTtlMs: 60_000 });
    // The reclaim and the claim have each incremented the epoch.
    expect((await world.until('SUSPENDED')).epoch).toBe(3n);
    expect(world.meter.paid).toHaveLength(1);
  });

  it('is claimed by another worker after the lease expires if its worker dies before the start (RT-2, RT-3)', async () => {
    const clock = new ManualClock(new Date());
    const world = await World.start({ model: () => ESCALATE, inFile: true, clock });
    await dieAfterDelivery(world);
    await world.startWorker({ workerId: 'worker-b', leaseTtlMs: 60_000 });
    expect((await world.describe()).epoch).toBe(1n);
    clock.advance(60_001);
    expect((await world.until('SUSPENDED')).epoch).toBe(2n);
    expect(world.meter.paid).toHaveLength(1);
  });

  it('stays with its worker when the clock is set forward (RT-2, BD-3)', async () => {
    const clock = new ManualClock(new Date());
    const world = await World.start({ model: () => ESCALATE, clock });
    await world.startWorker({ leaseTtlMs: 60_000 });
    await world.deliver({ runId: 'run-1' });
    await world.until('SUSPENDED', 'run-1');
    const { reached, release } = world.faults.holdAt('before generate op-1');
    await world.deliver({ runId: 'run-2' });
    await reached;
    clock.step(60_001);
    // When the other agent is claimed, the worker has also read the agents with expired leases.
    await world.approve('op-2', 'reject', 'run-1');
    expect((await world.until('BLOCKED', 'run-1')).epoch).toBe(2n);
    release();
    expect((await world.until('SUSPENDED', 'run-2')).epoch).toBe(1n);
  });

  it('has a lease with a correct expiry even if the clock of its worker is wrong (BD-3)', async () => {
    const clock = new ManualClock(new Date());
    const world = await World.start({ model: () => ESCALATE });
    const asked = world.faults.silenceAt('before generate op-1');
    const { store } = await world.startWorker({ leaseTtlMs: 300 }, { clock });
    await world.deliver();
    await asked;
    clock.step(3_600_000);
    const expiresAt = async () => {
      const row = await store.db.selectFrom('agents').selectAll().executeTakeFirst();
      return row?.lease_expires_at ?? undefined;
    };
    // Lease expiries after the clock step; the clock of the test process is correct.
    const renewed = new Set<number>();
    await vi.waitFor(async () => {
      renewed.add((await expiresAt())?.getTime() ?? 0);
      expect(renewed.size).toBeGreaterThan(4);
    });
    expect(Math.max(...renewed)).toBeLessThan(Date.now() + 60_000);
  });

  it('is claimed again when the result of the commit of its delivery is unknown (RT-2, RT-3)', async () => {
    const world = await World.start({ model: () => ESCALATE });
    const asked = world.faults.silenceAt('before generate op-1');
    const after = async (n: number) => {
      if (n === 1) throw new Error('The connection was lost.');
    };
    await world.startWorker(
      { leaseTtlMs: 300 },
      {
        openStore: async (location) =>
          new InterceptedStore(await openWorkerStore(location), { after }),
      },
    );
    await expect(world.deliver({ runId: 'run-1' })).rejects.toThrow();
    expect(await world.deliver({ runId: 'run-1' })).toBe(false);
    // The worker renews its leases only while it runs an agent.
    await world.deliver({ runId: 'run-2' });
    await asked;
    expect((await world.until('SUSPENDED', 'run-1')).epoch).toBe(2n);
  });
});
