import { AgentKind } from '@writ/contracts/writ/supervision/v1/manifest_pb';
import { HistoryRetention } from '@writ/contracts/writ/supervision/v1/supervision_pb';
import { AgentState } from '@writ/contracts/writ/worker/v1/agent_worker_service_pb';
import { ManualClock } from '@writ/kernel';
import { describe, expect, it, vi } from 'vitest';
import { openWorkerStore } from '../src/store/worker-store.ts';
import { AGENT, RUN, TENANT, TRACEPARENT } from './delivery.ts';
import { InterceptedStore } from './intercepted-store.ts';
import { World } from './world.ts';

const ESCALATE =
  '{"kind":"tool","name":"issue_refund","args":{"user_id":42,"amount_usd":1200,"reason":"x"}}';
const LOOK_UP = '{"kind":"tool","name":"get_refund_context","args":{"user_id":42}}';

const cancelRequest = {
  requestId: 'cancel-1',
  tenant: TENANT,
  runId: RUN,
  stopReason: 'cancelled',
  retention: HistoryRetention.PERMANENT,
};

describe('Deliver', () => {
  it('accepts a delivery once, even when it is repeated with new tokens (RT-3)', async () => {
    const world = await World.start({ model: () => ESCALATE });
    await world.startWorker();
    expect(await world.deliver()).toBe(true);
    expect(await world.deliver()).toBe(false);
    await world.until('SUSPENDED');
    expect(world.meter.paid).toHaveLength(1);
  });

  it('rejects a request_id that was used for another delivery (RT-3)', async () => {
    const world = await World.start({ model: () => ESCALATE });
    await world.startWorker();
    await world.deliver();
    await expect(world.deliver({ goal: 'Something else.' })).rejects.toMatchObject({
      reason: 'REQUEST_ID_REUSED',
    });
    await expect(world.deliver({ requestId: 'deliver-2' })).rejects.toMatchObject({
      reason: 'AGENT_EXISTS',
    });
  });

  it('rejects kinds that the worker cannot run (AG-1)', async () => {
    const world = await World.start();
    await world.startWorker();
    await expect(world.deliver({ manifest: { kind: AgentKind.CUSTOM } })).rejects.toMatchObject({
      kind: 'failed_precondition',
      reason: 'AGENT_KIND_NOT_IMPLEMENTED',
      message: expect.stringContaining('custom'),
    });
  });

  it('rejects an agent of a tenant that the worker does not serve (SYS-6)', async () => {
    const world = await World.start();
    await world.startWorker({ tenants: ['globex'] });
    await expect(world.deliver()).rejects.toMatchObject({
      kind: 'unavailable',
      reason: 'TENANT_NOT_SERVED',
      metadata: { setting: 'WRIT_WORKER_TENANTS' },
    });
  });

  it('rejects a delivery after its run was cancelled (SUP-8, RT-4)', async () => {
    const world = await World.start();
    await world.startWorker();
    await world.worker.cancel(cancelRequest);
    await expect(world.deliver()).rejects.toMatchObject({
      reason: 'RUN_ENDED',
      metadata: { stop_reason: 'cancelled' },
    });
  });
});

describe('Signal', () => {
  it('is not lost when it arrives before the agent waits for it (RT-3)', async () => {
    const world = await World.start({ model: () => ESCALATE });
    const reviewed = world.faults.silenceAt('after review op-2');
    await world.startWorker();
    await world.deliver();
    await reviewed;
    await world.approve('op-2', 'reject');
    world.faults.release();
    await world.until('BLOCKED');
    expect((await world.describe()).epoch).toBe(1n);
  });

  it('is not lost when it arrives during the suspension (RT-3)', async () => {
    const world = await World.start({ model: () => ESCALATE });
    let isApproved = false;
    // The first transaction after the review suspends the agent.
    const before = async () => {
      if (isApproved || world.supervisor.decided.length === 0) return;
      isApproved = true;
      await world.approve('op-2', 'reject');
    };
    await world.startWorker(
      {},
      {
        openStore: async (location) =>
          new InterceptedStore(await openWorkerStore(location), { before }),
      },
    );
    await world.deliver();
    const { epoch, stopReason } = await world.until('BLOCKED');
    expect({ epoch, stopReason }).toEqual({ epoch: 1n, stopReason: 'human_rejected' });
  });

  it('is accepted once (RT-3)', async () => {
    const world = await World.start({ model: () => ESCALATE });
    await world.startWorker();
    await world.deliver();
    await world.until('SUSPENDED');
    expect(await world.approve('op-2', 'reject')).toMatchObject({ accepted: true });
    expect(await world.approve('op-2', 'reject')).toMatchObject({ accepted: false });
  });

  it('wakes only an agent that waits for it (AG-7)', async () => {
    const world = await World.start({ model: () => ESCALATE });
    await world.startWorker();
    await world.deliver();
    await world.until('SUSPENDED');
    const to = { tenant: TENANT, runId: RUN, agentInstance: AGENT.instance };
    await world.worker.signal({ ...to, requestId: 'other', name: 'new_source_item' });
    expect((await world.describe()).state).toBe(AgentState.SUSPENDED);
  });

  it('is rejected for an unknown agent and with an invalid decision (SYS-3)', async () => {
    const world = await World.start();
    await world.startWorker();
    const to = { tenant: TENANT, runId: RUN, agentInstance: 'unknown-1', requestId: 's-1' };
    await expect(world.worker.signal({ ...to, name: 'resumed' })).rejects.toMatchObject({
      reason: 'AGENT_NOT_FOUND',
    });
    await expect(world.worker.signal({ ...to, name: 'approval:op-2' })).rejects.toMatchObject({
      reason: 'INVALID_SIGNAL',
      metadata: { field: 'approval' },
    });
  });

  it('is rejected with a name that only the worker may send (RT-3, SYS-6)', async () => {
    const world = await World.start();
    await world.startWorker();
    const to = { tenant: TENANT, runId: RUN, agentInstance: AGENT.instance, requestId: 's-1' };
    for (const name of ['reply:helper-1', 'timer:op-1', 'new_feed_item']) {
      await expect(world.worker.signal({ ...to, name })).rejects.toMatchObject({
        reason: 'INVALID_SIGNAL',
        metadata: { field: 'name' },
      });
    }
  });
});

describe('Cancel', () => {
  it('aborts in-flight calls and ends the step (SUP-8, AG-7)', async () => {
    const world = await World.start({ model: () => ESCALATE });
    const asked = world.faults.silenceAt('before generate op-1');
    const worker = await world.startWorker();
    await world.deliver();
    await asked;
    expect(await world.worker.cancel(cancelRequest)).toMatchObject({ ended: 1 });
    expect(await world.worker.cancel(cancelRequest)).toMatchObject({ ended: 1 });
    expect(await world.describe()).toMatchObject({
      state: AgentState.CANCELLED,
      stopReason: 'cancelled',
    });
    await worker.stop();
    expect(world.steps()).toEqual(['STEP_START 1', 'STEP_END 1 cancelled']);
    expect(world.supervisor.reports).toEqual([]);
  });

  it('ends a suspended agent, which no later signal wakes (SUP-8, RT-4)', async () => {
    const world = await World.start({ model: () => ESCALATE });
    await world.startWorker();
    await world.deliver();
    await world.until('SUSPENDED');
    await world.worker.cancel({ ...cancelRequest, stopReason: 'approval_expired' });
    expect(await world.approve('op-2', 'reject')).toMatchObject({ accepted: false });
    expect(await world.describe()).toMatchObject({
      state: AgentState.BLOCKED,
      stopReason: 'approval_expired',
    });
  });

  it('deletes journal and payloads unless the retention keeps them (SUP-4)', async () => {
    for (const [retention, entries] of [
      [HistoryRetention.NONE, 0],
      [HistoryRetention.RUN, 0],
      [HistoryRetention.PERMANENT, 3],
    ] as const) {
      const world = await World.start({ model: () => ESCALATE });
      const { store } = await world.startWorker();
      await world.deliver();
      await world.until('SUSPENDED');
      await world.worker.cancel({ ...cancelRequest, retention });
      expect(await store.db.selectFrom('journal').selectAll().execute()).toHaveLength(entries);
      const messages = await store.db.selectFrom('inbox').selectAll().execute();
      expect(messages).toHaveLength(entries === 0 ? 0 : 1);
      const [agent] = await store.db.selectFrom('agents').select('credentials').execute();
      expect(agent).toEqual({ credentials: null });
    }
  });
});

describe('DescribeRun', () => {
  it('reports an in-flight tool call (AG-7)', async () => {
    const world = await World.start({ model: () => LOOK_UP });
    const called = world.faults.silenceAt('before call_tool op-2');
    await world.startWorker();
    await world.deliver();
    await called;
    expect((await world.describe()).state).toBe(AgentState.WAITING_FOR_TOOL);
  });
});

describe('a worker', () => {
  it('writes nothing under a stale epoch (RT-2)', async () => {
    const clock = new ManualClock(new Date());
    const world = await World.start({ model: () => ESCALATE, inFile: true, clock });
    const frozen = world.faults.holdAt('after generate op-1');
    const first = await world.startWorker({
      workerId: 'worker-a',
      leaseTtlMs: 60_000,
      // The worker still runs the agent under its old lease, so with a limit of one agent it cannot claim the agent
      // again.
      maxConcurrentAgents: 1,
    });
    await world.deliver();
    await frozen.reached;
    // Waits for the delayed commit of the step, which extends the lease; the next commit follows the answer.
    await vi.waitFor(() => expect(world.steps()).toEqual(['STEP_START 1']));
    // A paused process does not renew its lease.
    clock.advance(60_001);
    const asked = world.faults.silenceAt('before generate op-1');
    const second = await world.startWorker({ workerId: 'worker-b', leaseTtlMs: 3_600_000 });
    await asked;
    const written = async () => [
      await second.store.db.selectFrom('journal').selectAll().execute(),
      await second.store.db.selectFrom('agents').selectAll().execute(),
    ];
    const before = await written();
    frozen.release();
    // The first worker continues. If its last grant is still valid, its proposal is reviewed and its first write is the
    // suspension; otherwise the renewal of its grant is refused.
    await vi.waitFor(() =>
      expect([...world.supervisor.epochs, ...world.slots.staleEpochs]).toContain(1n),
    );
    await first.stop();
    expect(await written()).toEqual(before);
    expect(await world.describe()).toMatchObject({ state: AgentState.RUNNING, epoch: 2n });
  });

  it('claims only agents of the tenants that it serves (SYS-6)', async () => {
    const world = await World.start({ model: () => ESCALATE, inFile: true });
    const asked = world.faults.silenceAt('before generate op-1');
    const first = await world.startWorker({ workerId: 'worker-a' });
    await world.deliver();
    await asked;
    await first.stop();
    await world.startWorker({ workerId: 'worker-b', tenants: ['globex'] });
    await world.startWorker({ workerId: 'worker-c', tenants: [TENANT] });
    await world.until('SUSPENDED');
    expect(world.supervisor.workers).toEqual(['worker-c']);
  });

  it('runs at most the configured number of agents, and starts the next agent when one is suspended (RT-2)', async () => {
    const world = await World.start({ model: () => ESCALATE });
    const first = world.faults.holdAt('before generate op-1');
    await world.startWorker({ maxConcurrentAgents: 1, pollMs: 3_600_000 });
    await world.deliver({ runId: 'run-1' });
    await first.reached;
    await world.deliver({ runId: 'run-2' });
    expect(await world.describe('run-2')).toMatchObject({ epoch: 0n });
    first.release();
    await world.until('SUSPENDED', 'run-1');
    await world.until('SUSPENDED', 'run-2');
  });

  it('releases its agents at shutdown, and the next worker resumes them (RT-2)', async () => {
    const world = await World.start({ model: () => ESCALATE, inFile: true });
    const asked = world.faults.silenceAt('after generate op-1');
    const first = await world.startWorker({ leaseTtlMs: 3_600_000, workerId: 'worker-a' });
    await world.deliver();
    await asked;
    await first.stop();
    await world.startWorker({ workerId: 'worker-b' });
    await world.until('SUSPENDED');
    expect(world.meter.paid).toEqual(['op-1']);
  });

  it('runs an agent in the trace of its run, with each lease linked to the previous one (SYS-1)', async () => {
    const world = await World.start({ model: () => ESCALATE });
    await world.startWorker();
    await world.deliver();
    await world.until('SUSPENDED');
    await world.approve('op-2', 'reject');
    await world.until('BLOCKED');
    await vi.waitFor(() => expect(spansOf(world)).toHaveLength(2));
    const [first, second] = spansOf(world);
    const below = world.spans.spans().filter(({ parentSpanId }) => parentSpanId === first?.spanId);
    const calls = below.filter(({ kind }) => kind === 'client');
    expect(calls.map(({ name }) => name)).toEqual([
      'writ.model.v1.ModelService/Generate',
      'writ.review.v1.ReviewService/ReviewAction',
    ]);
    expect(first).toMatchObject({
      traceId: TRACEPARENT.split('-')[1],
      parentSpanId: TRACEPARENT.split('-')[2],
      links: [],
    });
    expect(second?.links).toEqual([{ traceId: first?.traceId, spanId: first?.spanId }]);
  });
});

function spansOf(world: World) {
  return world.spans.spans().filter(({ name }) => name === `invoke_agent ${AGENT.name}`);
}
