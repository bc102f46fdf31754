import { ExecutionMeterService } from '@writ/contracts/writ/meter/v1/execution_meter_service_pb';
import { RunState } from '@writ/contracts/writ/run/v1/run_pb';
import { SpawnBudgetService } from '@writ/contracts/writ/spawn/v1/spawn_budget_service_pb';
import {
  AgentPresence,
  AgentWorkerService,
} from '@writ/contracts/writ/worker/v1/agent_worker_service_pb';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { agentsOf, insertAgent } from '../src/store/agent/agents.ts';
import { openSecondStore, SupervisorUnderTest } from './supervisor-under-test.ts';

const { findAgents, deliver } = AgentWorkerService.method;
const { listOpenTabs, closeTab } = ExecutionMeterService.method;
const { listOpenPools, closePool } = SpawnBudgetService.method;

describe('the comparison of open runs with the peers', () => {
  let supervisor: SupervisorUnderTest;
  beforeEach(async () => {
    supervisor = await SupervisorUnderTest.start({ config: { sweepMs: 10, reconcileMs: 20 } });
  });
  afterEach(() => supervisor.close());

  async function started(requestId = 'req-1'): Promise<string> {
    const start = { requestId, agent: 'worker', goal: 'Do it.' };
    const before = supervisor.fakes.deliveries.length;
    const { run } = await supervisor.runs().startRun(start);
    await supervisor.fakes.called(deliver, before + 1);
    return run?.runId ?? '';
  }

  /** Inserts live children of the root of a run. */
  async function insertChildren(runId: string, count: number): Promise<void> {
    const key = { tenant: 'acme', runId };
    const store = await openSecondStore(supervisor);
    const [root] = await agentsOf(store.db, key);
    if (root === undefined) throw new Error('The run has no root.');
    const child = { ...root, parent_instance: root.instance, active_since: null };
    await store.transaction(
      async (trx) => {
        for (let n = 0; n < count; n += 1) await insertAgent(trx, { ...child, instance: `c-${n}` });
      },
      { run: key },
    );
    await store.close();
  }

  const run = async (runId: string) => (await supervisor.runs().getRun({ runId })).run;

  /** Sets the presence that the worker reports for every agent in each call; the last value repeats. */
  function presences(...reported: readonly AgentPresence[]): void {
    const rest = [...reported];
    supervisor.fakes.answer(findAgents, ({ agents }) => {
      const presence = (rest.length > 1 ? rest.shift() : rest[0]) ?? AgentPresence.UNSPECIFIED;
      return { presences: agents.map(() => presence) };
    });
  }

  it.each([AgentPresence.UNKNOWN, AgentPresence.ENDED])(
    'ends a run whose agent is no longer alive at the worker, presence %i (BD-3)',
    async (presence) => {
      presences(presence);
      const runId = await started();
      await vi.waitFor(async () => {
        const { state, result } = (await run(runId)) ?? {};
        expect(state).toBe(RunState.ERROR);
        expect(result?.stopReason).toBe('error:agent_lost');
      });
      expect(supervisor.fakes.requests(closeTab).map(({ tab }) => tab?.runId)).toEqual([runId]);
      expect(supervisor.fakes.requests(closePool).map((request) => request.runId)).toEqual([runId]);
    },
  );

  it('does not end a run for a difference that the next round does not confirm (BD-3)', async () => {
    const { UNKNOWN, ALIVE, UNSPECIFIED } = AgentPresence;
    presences(UNKNOWN, ALIVE, UNKNOWN, ALIVE, ALIVE, UNSPECIFIED);
    const runId = await started();
    await vi.waitFor(() => expect(supervisor.fakes.requests(findAgents).length).toBeGreaterThan(8));
    expect((await run(runId))?.state).toBe(RunState.RUNNING);
  });

  it('compares every agent, however many a run has (BD-3)', async () => {
    const compared = new Set<string>();
    supervisor.fakes.answer(findAgents, ({ agents }) => {
      for (const { runId, agentInstance } of agents) compared.add(`${runId}/${agentInstance}`);
      return { presences: agents.map(() => AgentPresence.ALIVE) };
    });
    const runIds = [await started(), await started('req-2')].toSorted();
    await insertChildren(runIds[0] ?? '', 1_200);
    await vi.waitFor(() => expect(compared.size).toBe(1_202), { timeout: 10_000 });
  });

  it('closes tabs and pools of unknown runs, and keeps those of live runs (BD-3)', async () => {
    const runId = await started();
    const lost = { tenant: 'acme', runId: 'run-lost' };
    const live = { tenant: 'acme', runId };
    const closed = () => ({
      tabs: supervisor.fakes.requests(closeTab).map(({ tab }) => tab?.runId),
      pools: supervisor.fakes.requests(closePool).map((request) => request.runId),
    });
    supervisor.fakes.answer(listOpenTabs, () => ({
      tabs: [lost, live]
        .filter(({ runId: of }) => !closed().tabs.includes(of))
        .map((of) => ({ ...of, agentInstance: 'agent-1' })),
    }));
    supervisor.fakes.answer(listOpenPools, () => ({
      pools: [lost, live].filter(({ runId: of }) => !closed().pools.includes(of)),
    }));
    await vi.waitFor(() => expect(closed()).toEqual({ tabs: ['run-lost'], pools: ['run-lost'] }));
    const rounds = supervisor.fakes.requests(listOpenTabs).length;
    await vi.waitFor(() =>
      expect(supervisor.fakes.requests(listOpenTabs).length).toBeGreaterThan(rounds + 4),
    );
    expect(closed()).toEqual({ tabs: ['run-lost'], pools: ['run-lost'] });
  });

  it('does not call FindAgents while no run is open (BD-3)', async () => {
    presences(AgentPresence.ALIVE);
    await vi.waitFor(() =>
      expect(supervisor.fakes.requests(listOpenTabs).length).toBeGreaterThan(3),
    );
    expect(supervisor.fakes.requests(findAgents)).toEqual([]);
  });
});
