import { durationFromMs } from '@bufbuild/protobuf/wkt';
import { SlotState } from '@writ/contracts/writ/spawn/v1/pool_pb';
import { SpawnBudgetService } from '@writ/contracts/writ/spawn/v1/spawn_budget_service_pb';
import { isWritError } from '@writ/kernel';
import type { ClosableRpcClient } from '@writ/rpc';
import { startTestPlatform, type TestPlatform } from '@writ/testing/platform';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { FAMILY } from './scripted/family.ts';
import type { ScriptedAgent } from './scripted/scripted-agent.ts';
import { ScriptedWorker } from './scripted/scripted-worker.ts';
import { until } from './scripted/until.ts';
import { supervisorClient } from './scripted/worker-clients.ts';

/** An agent that may no longer act, with the credentials of its worker. */
interface Stale {
  readonly root: ScriptedAgent;
  readonly agent: ScriptedAgent;
  /** The writ of the call `op-held`, which was approved while the agent was active. */
  readonly writ: string;
}

const TOOL_CALL = 'op-held';

/** Every boundary at which a worker acts for an agent; new call ids avoid replays. */
const BOUNDARIES: Readonly<Record<string, (stale: Stale) => Promise<unknown>>> = {
  Generate: ({ agent }) => agent.generate('op-late'),
  ReviewAction: ({ agent }) => agent.propose('op-late', 42),
  GetDecision: ({ agent }) => agent.decision(TOOL_CALL),
  SpawnChild: ({ agent }) => agent.spawn('op-late', 'scout'),
  CallTool: ({ agent, writ }) => agent.callTool(TOOL_CALL, 42, writ),
  EndChild: ({ agent }) => agent.endChild('scout-none', 'op-late'),
};

interface State {
  /** Brings an active agent into the state. */
  readonly enter: (stale: Stale) => Promise<void>;
  /** The refusal reason by boundary; omitted boundaries do not check this state, so the test does not call them. */
  readonly refused: Readonly<Record<string, string>>;
}

const GRANTED = ['Generate', 'ReviewAction', 'GetDecision', 'SpawnChild'];
const everywhere = (boundaries: readonly string[], reason: string) =>
  Object.fromEntries(boundaries.map((boundary) => [boundary, reason]));

const STATES: Readonly<Record<string, State>> = {
  'has just been preempted by the supervisor': {
    enter: async ({ root }) => {
      const { paused } = await root.spawn('op-preempt', 'chief');
      expect(paused).toBeDefined();
    },
    // The meter refuses when the grant expires; a writ authorizes the one approved action.
    refused: everywhere(['ReviewAction', 'GetDecision', 'SpawnChild'], 'AGENT_PAUSED'),
  },
  'is paused and its grant has expired': {
    enter: async ({ root, agent }) => {
      await root.spawn('op-preempt', 'chief');
      await untilGrantExpired(agent);
    },
    refused: everywhere(GRANTED, 'SLOT_GRANT_EXPIRED'),
  },
  'has lost the lease of its slot': {
    enter: async ({ agent }) => {
      await vi.waitFor(async () => expect(await waitingAgents(agent)).toContain(agent.instance), {
        timeout: 30_000,
        interval: 50,
      });
    },
    refused: everywhere(GRANTED, 'SLOT_GRANT_EXPIRED'),
  },
  'sends no grant': {
    enter: async ({ agent }) => {
      agent.grant = '';
    },
    refused: everywhere(GRANTED, 'SLOT_GRANT_REQUIRED'),
  },
  'has a stale epoch': {
    enter: async ({ agent }) => {
      // Presents a higher epoch to every service, as a worker that took over does.
      agent.epoch = 2n;
      await agent.renew();
      await agent.generate('op-2-taken');
      await agent.propose('op-2-proposed', 42);
      const { grant } = agent;
      const replayed = await agent.decision('op-2-proposed');
      await agent.callTool('op-2-proposed', 42, replayed?.writ ?? '');
      agent.epoch = 1n;
      agent.grant = grant;
    },
    // A grant contains the epoch of its lease.
    refused: {
      ...everywhere(GRANTED, 'SLOT_GRANT_MISMATCH'),
      CallTool: 'STALE_EPOCH',
      EndChild: 'SLOT_GRANT_MISMATCH',
    },
  },
  'has a stale epoch and a grant of that epoch': {
    enter: async ({ agent }) => {
      const { grant } = agent;
      agent.epoch = 2n;
      await agent.renew();
      await agent.generate('op-2-taken');
      await agent.propose('op-2-proposed', 42);
      const replayed = await agent.decision('op-2-proposed');
      await agent.callTool('op-2-proposed', 42, replayed?.writ ?? '');
      agent.epoch = 1n;
      agent.grant = grant;
    },
    refused: everywhere(Object.keys(BOUNDARIES), 'STALE_EPOCH'),
  },
  'was taken over by a worker that has made no call yet': {
    enter: async ({ agent }) => {
      agent.epoch = 2n;
      await agent.takeOver();
      agent.epoch = 1n;
    },
    refused: everywhere(Object.keys(BOUNDARIES), 'STALE_EPOCH'),
  },
};

let slots: ClosableRpcClient<typeof SpawnBudgetService>;

/** Returns the agents with an expired slot lease in the run of an agent. */
async function waitingAgents({ runId }: ScriptedAgent): Promise<(string | undefined)[]> {
  const { pool } = await slots.getPool({ tenant: 'default', runId });
  return (pool?.waiting ?? []).map(({ agent }) => agent?.instance);
}

/** Resolves when the grant of the agent is rejected as expired. */
async function untilGrantExpired(agent: ScriptedAgent): Promise<void> {
  await vi.waitFor(
    () => expect(agent.decision(TOOL_CALL)).rejects.toMatchObject({ reason: 'SLOT_GRANT_EXPIRED' }),
    { timeout: 30_000, interval: 25 },
  );
}

describe('a worker that continues to call', () => {
  let test: TestPlatform;
  let worker: ScriptedWorker;
  beforeAll(async () => {
    test = await startTestPlatform({
      files: FAMILY,
      env: {
        WRIT_SLOT_GRANT_TTL: '2500ms',
        WRIT_SLOT_LEASE: '3500ms',
      },
    });
    const platform = { dataDir: test.dataDir, addresses: test.platform.addresses };
    worker = await ScriptedWorker.start(platform);
    slots = await supervisorClient(platform, SpawnBudgetService, 'spawn-budget');
  });
  afterAll(async () => {
    for (const each of [worker, slots]) each.close();
    await test.close();
  });

  let started = 0;
  /** A scout that holds the second of two slots, with a writ. */
  async function startScout(): Promise<Stale> {
    started += 1;
    const { run } = await test.client.runs.startRun({
      requestId: `start-${started}`,
      agent: 'lead',
      goal: 'Find it.',
      spawnBudget: { maxAgents: 2 },
    });
    const root = await worker.take(run?.runId ?? '');
    const agent = await root.child('op-1');
    const decision = await agent.propose(TOOL_CALL, 42);
    await root.renew();
    await agent.renew();
    return { root, agent, writ: decision?.writ ?? '' };
  }

  it.concurrent.each(Object.entries(STATES))(
    'gets the expected refusal reason at each boundary when its agent %s (SB-4, SB-8, RT-2)',
    async (_state, { enter, refused }) => {
      const stale = await startScout();
      await enter(stale);
      const answers: Record<string, string> = {};
      await Promise.all(
        Object.entries(BOUNDARIES).map(async ([boundary, call]) => {
          if (refused[boundary] === undefined) return;
          answers[boundary] = await call(stale).then(
            () => 'accepted',
            (error: unknown) => (isWritError(error) ? error.reason : String(error)),
          );
        }),
      );
      expect(answers).toEqual(refused);
    },
  );

  it.concurrent('consumes active time only under a lease: an agent without a lease continues when an agent with a lease exceeds its limit (EM-1, SB-8)', async () => {
    const { run } = await test.client.runs.startRun({
      requestId: 'start-silent',
      agent: 'lead',
      goal: 'Find it.',
    });
    const root = await worker.take(run?.runId ?? '');
    const executionBudget = { maxActive: durationFromMs(5_000) };
    const silent = await root.child('op-1', 'scout', { executionBudget });
    const busy = await root.child('op-2', 'scout', { executionBudget });
    const isOver = async () => (await busy.renew())?.state === SlotState.RELEASED || undefined;
    await until('the end of the active time of the busy agent', isOver, 250);
    await root.renew();
    expect((await root.endChild(busy.instance, 'end-2')).stopReason).toBe('max_seconds');
    expect((await silent.renew())?.state).toBe(SlotState.ACTIVE);
    expect((await silent.propose('op-1', 42))?.stopReason).toBe('');
  });

  it('is refused when it spawns a child with a larger budget than its parent (SUP-9)', async () => {
    const { agent, root } = await startScout();
    const more = { executionBudget: { maxTurns: 21n } };
    await expect(agent.spawn('op-late', 'scout', more)).rejects.toMatchObject({
      reason: 'BUDGET_ABOVE_PARENT',
      metadata: { dimension: 'max_turns', limit: '20' },
    });
    expect(worker.delivered(root.runId)).toHaveLength(2);
  });
});
