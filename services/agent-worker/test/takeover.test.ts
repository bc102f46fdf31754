import { AgentState } from '@writ/contracts/writ/worker/v1/agent_worker_service_pb';
import { PermissionDeniedError, UnavailableError } from '@writ/kernel';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import type { AgentWorker } from '../src/index.ts';
import { ScriptedModel } from './scripted-model.ts';
import { World } from './world.ts';

/**
 * Settings of a worker that a test lets hang: it runs one agent at a time, and renews no lease during the test.
 */
const FROZEN = { maxConcurrentAgents: 1, leaseTtlMs: 3_600_000 } as const;

let scripts: ScriptedModel;

beforeAll(async () => {
  scripts = await ScriptedModel.start();
});

afterAll(() => scripts[Symbol.asyncDispose]());

/** Returns the epochs of takeovers that each service has recorded. */
function admitted({ supervisor, meter, gateway }: World) {
  return [supervisor.admitted, meter.admitted, gateway.admitted];
}

/** Starts a worker that hangs in the model call of its first step, after its pending changes are committed. */
async function startFrozen(world: World): Promise<AgentWorker> {
  const frozen = await world.startWorker(FROZEN);
  const asked = world.faults.silenceAt('after generate op-1');
  await world.deliver();
  await asked;
  // Waits for the delayed commit of the step. A later commit would renew a lease that the test has set to expired.
  // After a takeover, the commit would fail, so that this worker would stop running the agent and could claim it again.
  await vi.waitFor(async () => {
    const row = await frozen.store.db.selectFrom('agents').selectAll().executeTakeFirst();
    expect(row?.step_started).toBe(1);
  });
  return frozen;
}

describe('a worker that takes over an agent', () => {
  it('sends its epoch to supervisor, meter and gateway before it acts (RT-2)', async () => {
    const world = await World.start({ model: scripts.model('escalate-1200'), inFile: true });
    const frozen = await startFrozen(world);
    expect(admitted(world)).toEqual([[], [], []]);
    const acted = world.faults.silenceAt('before generate op-1');
    const expired = { lease_expires_at: new Date(0) };
    await frozen.store.transaction((trx) => trx.updateTable('agents').set(expired).execute());
    await world.startWorker({ ...FROZEN, workerId: 'worker-2' });
    await acted;
    expect(admitted(world)).toEqual([[2n], [2n], [2n]]);
  });

  it('also sends its epoch when it is a new process of the same worker (RT-2)', async () => {
    const world = await World.start({ model: scripts.model('escalate-1200'), inFile: true });
    await startFrozen(world);
    const acted = world.faults.silenceAt('before generate op-1');
    await world.startWorker(FROZEN);
    await acted;
    // The reclaim and the claim have each incremented the epoch.
    expect(admitted(world)).toEqual([[3n], [3n], [3n]]);
  });

  it('leaves the takeover to the next worker when it stops before all services have its epoch (RT-2)', async () => {
    const world = await World.start({ model: scripts.model('escalate-1200'), inFile: true });
    await startFrozen(world);
    const unavailable = new UnavailableError('UNAVAILABLE', 'The gateway is down.');
    world.gateway.refuseAdmission = unavailable;
    // The drain timeout is long enough for the agent to stop; otherwise its lease would have to expire.
    const drained = { ...FROZEN, workerId: 'worker-1', drainMs: 5_000 };
    const draining = await world.startWorker(drained);
    await vi.waitFor(() => expect(world.meter.admitted).toEqual([3n]));
    await draining.stop();
    world.gateway.refuseAdmission = undefined;
    const acted = world.faults.silenceAt('before generate op-1');
    await world.startWorker({ ...FROZEN, workerId: 'worker-2' });
    await acted;
    expect(admitted(world)).toEqual([[3n, 4n], [3n, 4n], [4n]]);
  });

  it('ends the agent with the reason of a service that permanently refuses its epoch (RT-2, SYS-3)', async () => {
    const world = await World.start({ model: scripts.model('escalate-1200'), inFile: true });
    await startFrozen(world);
    const refused = new PermissionDeniedError('CALLER_NOT_ALLOWED', 'Worker 2 is not allowed.');
    world.gateway.refuseAdmission = refused;
    await world.startWorker(FROZEN);
    expect((await world.until('ERROR')).stopReason).toBe('error:caller_not_allowed');
    expect(world.supervisor.reports).toMatchObject([
      {
        stopReason: 'error:caller_not_allowed',
        phase: 'worker',
        detail: 'Worker 2 is not allowed.',
      },
    ]);
  });

  it('sends no epoch when the previous worker has released the lease (RT-2)', async () => {
    const world = await World.start({ model: scripts.model('escalate-1200') });
    await world.startWorker();
    await world.deliver();
    await world.until('SUSPENDED');
    await world.approve('op-4', { args: { amount_usd: 800 } });
    await vi.waitFor(async () => expect((await world.describe()).state).toBe(AgentState.COMPLETED));
    expect((await world.describe()).epoch).toBe(2n);
    expect(admitted(world)).toEqual([[], [], []]);
  });
});
