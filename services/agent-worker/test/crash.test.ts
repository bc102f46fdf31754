import { HookEventType } from '@writ/contracts/writ/hook/v1/hook_event_pb';
import { AgentKind } from '@writ/contracts/writ/supervision/v1/manifest_pb';
import { AgentState } from '@writ/contracts/writ/worker/v1/agent_worker_service_pb';
import { PreconditionError } from '@writ/kernel';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import type { AgentContext } from '../src/runtime/agent.ts';
import { openWorkerStore } from '../src/store/worker-store.ts';
import { RUN, TENANT } from './delivery.ts';
import type { Moment } from './fault-switches.ts';
import { crashAt, InterceptedStore } from './intercepted-store.ts';
import { ScriptedModel } from './scripted-model.ts';
import { approveAll } from './team.ts';
import { WorkerProcess } from './worker-process.ts';
import { World } from './world.ts';

/**
 * The worker crashes at every commit of one run and is restarted: nothing is lost or duplicated.
 */

const PAID = ['op-1', 'op-3', 'op-5', 'op-7'];
const DECIDED = [
  'op-2 approve get_refund_context',
  'op-4 escalate issue_refund',
  'op-6 approve send_refund_email',
  'op-8 approve final',
];
const EXECUTED = ['op-2 get_refund_context', 'op-4 issue_refund', 'op-6 send_refund_email'];
const STEPS = [1, 2, 3, 4].flatMap((step) => [
  `STEP_START ${step}`,
  `STEP_END ${step} ${step === 2 ? 'escalate' : 'approve'}`,
]);

/** Settings of a worker that a test abandons: it runs one agent at a time, and its lease outlasts the test. */
const FROZEN = { maxConcurrentAgents: 1, leaseTtlMs: 3_600_000 } as const;

let scripts: ScriptedModel;

beforeAll(async () => {
  scripts = await ScriptedModel.start();
});

afterAll(() => scripts[Symbol.asyncDispose]());

function startWorld(): Promise<World> {
  return World.start({ model: scripts.model('escalate-1200'), inFile: true });
}

/** Delivers the agent and approves its refund as a human, from any state of the run, until the run has ended. */
async function driveToEnd(world: World, isOver: () => boolean = () => false): Promise<void> {
  await world.deliver();
  const poll = async () => {
    if (isOver()) return;
    const { state } = await world.describe();
    if (state === AgentState.SUSPENDED) {
      await world.approve('op-4', { args: { amount_usd: 800 } });
    }
    expect(state).toBe(AgentState.COMPLETED);
  };
  await vi.waitFor(poll, { interval: 5, timeout: 30_000 });
}

/** Drives the run until its worker crashes (`died`); then starts another worker and drives the run to its end. */
async function survive(world: World, died: Promise<unknown>): Promise<void> {
  let isDead = false;
  const death = died.then(() => {
    isDead = true;
  });
  // A crashed worker sends no response, so the test does not wait for its calls.
  await Promise.race([death, driveToEnd(world, () => isDead).catch(() => death)]);
  await death;
  await world.startWorker(FROZEN);
  await driveToEnd(world);
}

/** Starts a worker after all tools were removed from the registry. */
async function restartWithoutTools(world: World) {
  world.gateway.registryVersion = 'v2';
  world.gateway.tools = [];
  return await world.startWorker(FROZEN);
}

/**
 * Starts a worker that commits its delivery and blocks all later commits until the faults of the world are released.
 */
async function startUncommitting(world: World): Promise<void> {
  const before = async (n: number) => {
    if (n > 1) await world.faults.untilReleased();
  };
  await world.startWorker(FROZEN, {
    openStore: async (location) =>
      new InterceptedStore(await openWorkerStore(location), { before }),
  });
}

/**
 * Delivers an agent to a worker whose first review request reaches the supervisor while all commits of the worker are
 * blocked; returns the events of that request.
 */
async function carryUncommitted(world: World) {
  const reviewed = world.faults.silenceAt('after review op-2');
  await startUncommitting(world);
  void world.deliver();
  await reviewed;
  return world.supervisor.requests[0]?.events ?? [];
}

/** An agent that commits its first step and then makes a final proposal that contains the end of its flow. */
function endingFlow(_: unknown, instance: string) {
  const run = async (ctx: AgentContext) => {
    ctx.flow('started');
    await ctx.step(1, async () => {
      // A call that depends on the time requires a commit.
      const text = String(ctx.now().getTime());
      const messages = [{ role: 'user', text }] as const;
      await ctx.llm({ model: 'small', messages, json: false, requireContent: false });
    });
    ctx.flow('ended');
    await ctx.propose({ action: { kind: 'final', answer: 'Done.' } });
  };
  return { id: instance, kind: 'custom', run };
}

function expectUndisturbed(world: World): void {
  expect(world.meter.paid).toEqual(PAID);
  expect(world.supervisor.decided).toEqual(DECIDED);
  expect(world.gateway.executed).toEqual(EXECUTED);
  expect([...new Set(world.supervisor.receipts)]).toEqual(
    EXECUTED.map((line) => `receipt-${line.split(' ')[0]}`),
  );
  expect(world.supervisor.endings.get(RUN)?.answer).toMatch(/^800 USD/);
}

async function expectStepsPublishedOnce(world: World): Promise<void> {
  expect(world.steps()).toEqual(STEPS);
}

/**
 * Minimum number of transactions of a run without a crash: delivery with its lease, suspension, signal, claim after the
 * signal, commit of the decision before the execution, and end. Slow steps cause further commits.
 */
const COMMITS = 6;

describe('a worker that crashes', () => {
  it('makes at least the expected commits in a run without a crash (RT-1)', async () => {
    const world = await startWorld();
    const worker = await world.startWorker(FROZEN);
    await driveToEnd(world);
    expect(worker.store.commits).toBeGreaterThanOrEqual(COMMITS);
    expectUndisturbed(world);
  });

  it('commits a step while the next call is in flight (RT-1, CO-1)', async () => {
    const world = await startWorld();
    const worker = await world.startWorker(FROZEN);
    const asked = world.faults.silenceAt('before generate op-3');
    await world.deliver();
    await asked;
    await vi.waitFor(async () => {
      const row = await worker.store.db.selectFrom('agents').selectAll().executeTakeFirst();
      expect(row).toMatchObject({ step_ended: 1, step_started: 2 });
    });
  });

  it('before it has committed its journal repeats its first call with the tools that were read at the delivery (RT-1, CO-1)', async () => {
    const world = await startWorld();
    const asked = world.faults.silenceAt('after generate op-1');
    await startUncommitting(world);
    void world.deliver();
    await asked;
    const { store } = await restartWithoutTools(world);
    await driveToEnd(world);
    // The meter rejects another request under the same call_id.
    expect(world.meter.requests.filter(({ callId }) => callId === 'op-1')).toHaveLength(2);
    expectUndisturbed(world);
    const { first_reads: left } = await store.db
      .selectFrom('agents')
      .select('first_reads')
      .executeTakeFirstOrThrow();
    expect(left).toBeNull();
  });

  it('after a request carried an uncommitted event emits the event when the agent ends (HK-1)', async () => {
    const world = await startWorld();
    const carried = await carryUncommitted(world);
    const recordedEvents = carried.filter(({ mac }) => mac.length === 0);
    expect(recordedEvents).toHaveLength(1);
    const { store } = await world.startWorker(FROZEN);
    const order = { tenant: TENANT, runId: RUN, stopReason: 'cancelled' };
    const { events } = await world.worker.cancel({
      ...order,
      requestId: 'cancel-1',
      recordedEvents: recordedEvents.map(({ event }) => event),
    });
    expect(events).toHaveLength(1);
    await vi.waitFor(() => expect(world.steps()).toEqual(['STEP_START 1', 'STEP_END 1 cancelled']));
    const row = await store.db.selectFrom('agents').selectAll().executeTakeFirst();
    expect(row).toMatchObject({ step_started: 1, step_ended: 1 });
  });

  it('after its final answer was approved suspends the agent until the supervisor ends it with its last events (HK-1, AG-7)', async () => {
    const world = await startWorld();
    const carried = await carryUncommitted(world);
    const recordedEvents = carried.map(({ event }) => event);
    const over = new PreconditionError('RUN_ENDED', 'The run has ended.', {
      stop_reason: 'success',
    });
    world.faults.failAt('before generate op-1', over);
    const { store } = await world.startWorker({ ...FROZEN, parkMs: 3_600_000 });
    await vi.waitFor(async () => expect((await world.describe()).state).toBe(AgentState.SUSPENDED));
    const order = { tenant: TENANT, runId: RUN, stopReason: 'success' };
    expect(
      await world.worker.cancel({ ...order, requestId: 'await-1', awaitEnd: true }),
    ).toMatchObject({ hasEnded: false });
    await world.worker.cancel({ ...order, requestId: 'cancel-1', recordedEvents });
    await vi.waitFor(() => expect(world.steps()).toEqual(['STEP_START 1', 'STEP_END 1 success']));
    const row = await store.db.selectFrom('agents').selectAll().executeTakeFirst();
    expect(row).toMatchObject({ state: 'COMPLETED', step_started: 1, step_ended: 1 });
  });

  it('after a request carried the end of a flow emits FLOW_END when the agent ends (HK-1, HK-2)', async () => {
    const world = await World.start({ model: () => 'hi', inFile: true });
    world.supervisor.rule = approveAll;
    const reviewed = world.faults.silenceAt('after review op-4');
    await world.startWorker(FROZEN, { agents: { custom: endingFlow } });
    void world.deliver({ manifest: { kind: AgentKind.CUSTOM } });
    await reviewed;
    const recordedEvents = world.supervisor.requests.flatMap(({ events }) =>
      events.filter(({ mac }) => mac.length === 0).map(({ event }) => event),
    );
    await world.startWorker(FROZEN);
    const order = { tenant: TENANT, runId: RUN, stopReason: 'success' };
    await world.worker.cancel({ ...order, requestId: 'cancel-1', recordedEvents });
    const { FLOW_START, STEP_START, STEP_END, FLOW_END } = HookEventType;
    await vi.waitFor(() => {
      const types = new Map(world.events.map(({ eventId, type }) => [eventId, type]));
      expect([...types.values()]).toEqual([FLOW_START, STEP_START, STEP_END, FLOW_END]);
    });
  });

  for (const moment of ['before', 'after'] as const) {
    for (let commit = 1; commit <= COMMITS; commit += 1) {
      it(`immediately ${moment} commit ${commit} loses and duplicates nothing (RT-1, RT-3)`, async () => {
        const world = await startWorld();
        const { hooks, died } = crashAt(world.faults, moment, commit);
        await world.startWorker(FROZEN, {
          openStore: async (location) =>
            new InterceptedStore(await openWorkerStore(location), hooks),
        });
        await survive(world, died);
        expectUndisturbed(world);
      });
    }
  }

  const answers: Moment[] = [
    ...PAID.map((callId) => `after generate ${callId}` as const),
    ...DECIDED.map((line) => `after review ${line.split(' ')[0]}` as const),
    ...EXECUTED.map((line) => `after call_tool ${line.split(' ')[0]}` as const),
  ];
  for (const answer of answers) {
    it(`${answer}, before the response arrives, receives the response again (RT-1, RT-3)`, async () => {
      const world = await startWorld();
      const died = world.faults.silenceAt(answer);
      await world.startWorker(FROZEN);
      await survive(world, died);
      expectUndisturbed(world);
      expect((await world.describe()).epoch).toBeGreaterThan(2n);
    });
  }

  it('repeatedly by SIGKILL resumes and emits each step once (RT-1, RT-2, HK-1)', async () => {
    const world = await startWorld();
    const moments = ['after generate op-3', 'after call_tool op-4', 'after review op-6'] as const;
    for (const moment of moments) {
      const reached = world.faults.silenceAt(moment);
      const child = await WorkerProcess.start(world);
      world.callWorkerAt(child.address);
      let isDead = false;
      const driving = driveToEnd(world, () => isDead).catch(() => undefined);
      await reached;
      isDead = true;
      await child.kill();
      await driving;
    }
    const worker = await world.startWorker();
    await driveToEnd(world);
    expectUndisturbed(world);
    await worker.stop();
    await expectStepsPublishedOnce(world);
  });
});
