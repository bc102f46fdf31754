import { AgentState } from '@writ/contracts/writ/worker/v1/agent_worker_service_pb';
import { PermissionDeniedError, UnavailableError } from '@writ/kernel';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import type { AgentWorker } from '../src/index.ts';
import { ScriptedModel } from './scripted-model.ts';
import { World } from './world.ts';

/** A frozen worker claims nothing more, and renews no lease while the test runs. */
const FROZEN = { maxConcurrentAgents: 1, leaseTtlMs: 3_600_000 } as const;

let scripts: ScriptedModel;

beforeAll(async () => {
  scripts = await ScriptedModel.start();
});

afterAll(() => scripts[Symbol.asyncDispose]());

/** The epochs that each service has recorded of workers that took over the agent. */
function admitted({ supervisor, meter, gateway }: World) {
  return [supervisor.admitted, meter.admitted, gateway.admitted];
}

/** Starts a worker that stops in the model call of its first step, and has nothing more to commit. */
async function startFrozen(world: World): Promise<AgentWorker> {
  const frozen = await world.startWorker(FROZEN);
  const asked = world.faults.silenceAt('after generate op-1');
  await world.deliver();
  await asked;
  // The delayed commit of the step renews the lease, also one that was set to expire; without the lease it would end the
  // session, after which this worker could claim the agent again.
  await vi.waitFor(async () => {
    const row = await frozen.store.db.selectFrom('agents').selectAll().executeTakeFirst();
    expect(row?.step_started).toBe(1);
  });
  return frozen;
}

describe('a worker that takes over an agent', () => {
  it('shows its epoch to supervisor, meter and gateway before it acts (RT-2)', async () => {
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

  it('shows its epoch likewise when it is a new process of the same worker (RT-2)', async () => {
    const world = await World.start({ model: scripts.model('escalate-1200'), inFile: true });
    await startFrozen(world);
    const acted = world.faults.silenceAt('before generate op-1');
    await world.startWorker(FROZEN);
    await acted;
    // The reclaim and the claim.
    expect(admitted(world)).toEqual([[3n], [3n], [3n]]);
  });

  it('leaves it to the next worker to show an epoch when it stops before it has (RT-2)', async () => {
    const world = await World.start({ model: scripts.model('escalate-1200'), inFile: true });
    await startFrozen(world);
    const unavailable = new UnavailableError('UNAVAILABLE', 'The gateway is down.');
    world.gateway.refuseAdmission = unavailable;
    // Long enough for its agent to stop: one that does not is left to the expiry of its lease.
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

  it('ends the agent with the reason of a service that refuses it permanently (RT-2, SYS-3)', async () => {
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

  it('makes no further call when the previous worker had released the lease (RT-2)', async () => {
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
