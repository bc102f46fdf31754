import { SLOT_GRANT_TTL_MS } from '@writ/identity';
import { ManualClock, PreconditionError, type ReasonOf, UnavailableError } from '@writ/kernel';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { AGENT, RUN } from './delivery.ts';
import { ScriptedModel } from './scripted-model.ts';
import { World, type WorldOptions } from './world.ts';

/** A long interval between rounds, so that no round causes the observed changes. */
const NO_ROUNDS = { slotRenewMs: 3_600_000 } as const;
const PAID = ['op-1', 'op-3', 'op-5', 'op-7'];

let scripts: ScriptedModel;

beforeAll(async () => {
  scripts = await ScriptedModel.start();
});

afterAll(() => scripts[Symbol.asyncDispose]());

function startWorld(options: WorldOptions = {}, run = 'auto-1000'): Promise<World> {
  return World.start({ model: scripts.model(run), ...options });
}

/** Resolves when spawn-budget has responded to a renewal that the worker sent after this call. */
async function untilAsked(world: World, timeout = 30_000): Promise<void> {
  const before = world.slots.calls;
  await vi.waitFor(() => expect(world.slots.calls).toBeGreaterThan(before + 2), {
    interval: 5,
    timeout,
  });
}

function expectNothingTwice(world: World): void {
  expect(world.meter.paid).toEqual(PAID);
  expect(world.supervisor.decided).toHaveLength(4);
  expect(world.gateway.executed).toHaveLength(3);
}

/** Starts a run and preempts its agent during its second model call. */
async function pauseInModelCall(world: World, state: 'PAUSED' | 'WAITING'): Promise<void> {
  const { reached, release } = world.faults.holdAt('before generate op-3');
  await world.startWorker();
  await world.deliver();
  await reached;
  world.slots.set(RUN, state);
  await untilAsked(world);
  release();
  await world.until('PARKED');
}

describe('the slots of a worker’s agents', () => {
  it('are requested under the epoch of each lease, before the first call (SB-4, SB-8, RT-2)', async () => {
    const world = await startWorld();
    await world.startWorker(NO_ROUNDS);
    await world.deliver();
    await world.until('COMPLETED');
    expect(world.slots.renewals).toEqual([`${RUN} RUN 1`]);
    expect(world.supervisor.grants).toEqual(Array(4).fill('refund-desk-1'));
  });

  it('are renewed in one batched call (SB-8)', async () => {
    const world = await startWorld();
    const held = ['op-1', 'op-1', 'op-1'].map(() => world.faults.untilReleased());
    world.meter.model = () => Promise.race(held).then(() => '');
    await world.startWorker();
    for (const runId of ['run-1', 'run-2', 'run-3']) await world.deliver({ runId });
    await vi.waitFor(() => expect(world.slots.batches).toContain(3), { interval: 5 });
  });

  it('are kept without a lease while agents are suspended, for any duration of an approval (SB-8, SV-5)', async () => {
    const clock = new ManualClock(new Date());
    const world = await startWorld({ clock }, 'escalate-1200');
    await world.startWorker();
    await world.deliver();
    await world.until('SUSPENDED');
    await vi.waitFor(() => expect(world.slots.renewals).toContain(`${RUN} SUSPEND 1`));
    clock.advance(60_000);
    await world.approve('op-4', { args: { amount_usd: 800 } });
    const { epoch } = await world.until('COMPLETED');
    expect(epoch).toBe(2n);
    expect(world.slots.renewals).toContain(`${RUN} RUN 2`);
    expect(world.supervisor.grants).toEqual(Array(4).fill('refund-desk-1'));
  });

  it('are reported as suspended until spawn-budget acknowledges the report, even after a restart (SB-8)', async () => {
    const world = await startWorld({ inFile: true }, 'escalate-1200');
    const worker = await world.startWorker(NO_ROUNDS);
    const { reached, release } = world.faults.holdAt('before review op-4');
    await world.deliver();
    await reached;
    world.slots.isDown = true;
    release();
    await world.until('SUSPENDED');
    await untilAsked(world);
    await worker.stop();
    world.slots.isDown = false;
    await world.startWorker();
    await vi.waitFor(() => expect(world.slots.renewals).toContain(`${RUN} SUSPEND 1`));
    // Suspended agents send no requests, so there is no further event to wait for.
    await expect(untilAsked(world, 500)).rejects.toThrow();
    expect(world.slots.renewals.filter((line) => line.includes('SUSPEND'))).toHaveLength(1);
  });

  it('are reported as suspended, with the awaited signals, by another worker when their worker stopped before it could report them (EM-1, RT-2)', async () => {
    const world = await startWorld({ inFile: true }, 'escalate-1200');
    await world.startWorker({ workerId: 'worker-b', waitReportMs: 20 });
    const dying = await world.startWorker({ workerId: 'worker-a' });
    const { reached, release } = world.faults.holdAt('before review op-4');
    await world.deliver();
    await reached;
    world.slots.isDown = true;
    release();
    await world.until('SUSPENDED');
    await untilAsked(world);
    await dying.stop();
    expect(world.slots.waits).toEqual([]);
    world.slots.isDown = false;
    await vi.waitFor(() => expect(world.slots.waits).toContain(`${RUN} approval:op-4`));
  });

  it('make agents wait while spawn-budget is unreachable (SB-4, SYS-4)', async () => {
    const world = await startWorld();
    world.slots.isDown = true;
    await world.startWorker();
    await world.deliver();
    await untilAsked(world);
    expect(world.meter.requests).toEqual([]);
    world.slots.isDown = false;
    const { epoch } = await world.until('COMPLETED');
    expect(epoch).toBe(1n);
    expectNothingTwice(world);
  });
});

describe('slots whose tokens spawn-budget cannot verify yet', () => {
  const unverified = () => new UnavailableError('KEYS_UNAVAILABLE', 'The keys are unavailable.');

  it('are requested again, while their agents wait (SB-4, SYS-4)', async () => {
    const world = await startWorld();
    world.faults.failAt('before renew RUN', unverified(), unverified(), unverified());
    await world.startWorker(NO_ROUNDS);
    await world.deliver();
    const { epoch, stopReason } = await world.until('COMPLETED');
    expect({ epoch, stopReason }).toEqual({ epoch: 1n, stopReason: 'success' });
    expect(world.slots.renewals.length).toBeGreaterThanOrEqual(4);
    expectNothingTwice(world);
  });

  it('are reported as suspended again (SB-8, EM-1)', async () => {
    const world = await startWorld({}, 'escalate-1200');
    world.faults.failAt('before renew SUSPEND', unverified());
    await world.startWorker(NO_ROUNDS);
    await world.deliver();
    await world.until('SUSPENDED');
    const reports = () => world.slots.renewals.filter((line) => line.includes('SUSPEND'));
    await vi.waitFor(() => expect(reports()).toHaveLength(2));
  });
});

describe('the slot grant of a delivery', () => {
  const grantOf = async (world: World, changes: { runId?: string; instance?: string } = {}) => {
    const of = { runId: RUN, instance: AGENT.instance, epoch: 0n, ...changes };
    return (await world.slots.grant(of)).token;
  };

  it('is used until it is renewed, so that the first calls wait for no renewal (SB-4)', async () => {
    const world = await startWorld();
    await world.startWorker(NO_ROUNDS);
    await world.deliver({ slotGrant: await grantOf(world) });
    await world.until('COMPLETED');
    expect(world.slots.renewals).toEqual([]);
    expect(world.slots.watched).toEqual(['acme']);
    expect(world.supervisor.grants).toEqual(Array(4).fill('refund-desk-1'));
    expectNothingTwice(world);
  });

  it('is renewed in the next round (SB-8)', async () => {
    const world = await startWorld();
    const { reached, release } = world.faults.holdAt('before generate op-1');
    await world.startWorker();
    await world.deliver({ slotGrant: await grantOf(world) });
    await reached;
    await vi.waitFor(() => expect(world.slots.renewals).toContain(`${RUN} RUN 1`));
    release();
    await world.until('COMPLETED');
  });

  it('permits no further call once a pause is reported (SB-4)', async () => {
    const world = await startWorld();
    const { reached, release } = world.faults.holdAt('before generate op-1');
    await world.startWorker(NO_ROUNDS);
    await world.deliver({ slotGrant: await grantOf(world) });
    await reached;
    await vi.waitFor(() => expect(world.slots.watched).toEqual(['acme']));
    world.slots.set(RUN, 'PAUSED', { hint: true });
    await vi.waitFor(() => expect(world.slots.renewals).toHaveLength(1));
    release();
    await world.until('PARKED');
    expect(world.supervisor.decided).toEqual([]);
  });

  it('is not used when it is for another agent, malformed or about to expire (SB-4)', async () => {
    const clock = new ManualClock(new Date());
    const world = await startWorld({ clock });
    await world.startWorker(NO_ROUNDS);
    const expiring = await grantOf(world, { runId: 'run-3' });
    clock.advance(SLOT_GRANT_TTL_MS - 200);
    const grants = [await grantOf(world, { instance: 'other-1' }), 'a.b.c', expiring];
    for (const [index, slotGrant] of grants.entries()) {
      const runId = `run-${index + 1}`;
      await world.deliver({ runId, slotGrant });
      await world.until('COMPLETED', runId);
      expect(world.slots.renewals.at(-1)).toBe(`${runId} RUN 1`);
    }
    expect(world.slots.renewals).toHaveLength(3);
  });
});

describe('an agent that loses its slot', () => {
  for (const state of ['PAUSED', 'WAITING'] as const) {
    it(`finishes its model call, parks when the slot is ${state}, and resumes when it has a slot again (SB-4, AG-7)`, async () => {
      const world = await startWorld();
      await pauseInModelCall(world, state);
      expect((await world.describe()).waitingFor).toEqual(['slot']);
      expect(world.supervisor.decided).toHaveLength(1);
      await untilAsked(world);
      expect((await world.describe()).epoch).toBe(1n);
      expect(world.slots.renewals.at(-1)).toBe(`${RUN} PARK 1`);
      world.slots.set(RUN, 'ACTIVE');
      const { epoch } = await world.until('COMPLETED');
      expect(epoch).toBe(2n);
      expectNothingTwice(world);
    });
  }

  it('detects the loss of a slot, and its return, before the next round (SB-4)', async () => {
    const world = await startWorld();
    const { reached, release } = world.faults.holdAt('before generate op-3');
    await world.startWorker(NO_ROUNDS);
    await world.deliver();
    await reached;
    await vi.waitFor(() => expect(world.slots.watched).toEqual(['acme']));
    world.slots.set(RUN, 'PAUSED', { hint: true });
    await vi.waitFor(() => expect(world.slots.renewals).toHaveLength(2));
    release();
    await world.until('PARKED');
    world.slots.set(RUN, 'ACTIVE', { hint: true });
    await world.until('COMPLETED');
    expectNothingTwice(world);
  });

  it('requests a new grant before it parks, when a peer rejects the current one as expired (SB-4)', async () => {
    const world = await startWorld();
    const refused = (reason: ReasonOf<'failed_precondition'>) =>
      new PreconditionError(reason, 'No.');
    world.faults.failAt('before generate op-1', refused('SLOT_GRANT_EXPIRED'));
    world.faults.failAt('before review op-2', refused('SLOT_GRANT_REQUIRED'));
    world.faults.failAt('before review op-4', refused('AGENT_PAUSED'), refused('AGENT_PAUSED'));
    await world.startWorker(NO_ROUNDS);
    await world.deliver();
    const { epoch } = await world.until('COMPLETED');
    expect(epoch).toBe(1n);
    expect(world.slots.renewals).toHaveLength(5);
    expectNothingTwice(world);
  });

  it('parks at once when a peer reports the pause and the slot is lost (SB-4)', async () => {
    const world = await startWorld();
    const { reached, release } = world.faults.holdAt('before review op-2');
    await world.startWorker(NO_ROUNDS);
    await world.deliver();
    await reached;
    world.faults.failAt('after review op-2', new PreconditionError('AGENT_PAUSED', 'Paused.'));
    world.slots.set(RUN, 'PAUSED');
    release();
    await world.until('PARKED');
    expect(world.gateway.executed).toEqual([]);
  });

  it('is polled with current tokens, however long it is parked (SB-8, SUP-9)', async () => {
    const clock = new ManualClock(new Date());
    const world = await startWorld({ clock });
    await pauseInModelCall(world, 'PAUSED');
    clock.advance(3_600_000);
    await vi.waitFor(() => expect(world.slots.renewals).toContain(`${RUN} PARK 2`));
    expect(world.supervisor.refreshes).toBe(1);
    world.slots.set(RUN, 'ACTIVE');
    await world.until('COMPLETED');
    expectNothingTwice(world);
  });

  it('is resumed by the next worker process (SB-4, RT-2)', async () => {
    const world = await startWorld({ inFile: true });
    const { reached, release } = world.faults.holdAt('before generate op-3');
    const worker = await world.startWorker();
    await world.deliver();
    await reached;
    world.slots.set(RUN, 'PAUSED');
    await untilAsked(world);
    release();
    await world.until('PARKED');
    await worker.stop();
    world.slots.set(RUN, 'ACTIVE');
    await world.startWorker();
    await world.until('COMPLETED');
    expectNothingTwice(world);
  });

  it('ends with the stop reason of the supervisor when its slot was released (SB-3, AG-7)', async () => {
    const world = await startWorld();
    world.supervisor.endings.set(RUN, { stopReason: 'cancelled', answer: '' });
    world.slots.set(RUN, 'RELEASED');
    await world.startWorker();
    await world.deliver();
    await world.until('CANCELLED');
    expect(world.meter.requests).toEqual([]);
  });

  it('is abandoned when spawn-budget reports a later lease (SB-8, RT-2)', async () => {
    const world = await startWorld();
    world.slots.sawEpoch(RUN, 3n);
    await world.startWorker({ leaseTtlMs: 50 });
    await world.deliver();
    const { epoch } = await world.until('COMPLETED');
    expect(epoch).toBe(3n);
    expect(world.supervisor.reports).toEqual([]);
    expectNothingTwice(world);
  });
});
