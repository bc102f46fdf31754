import { RunState } from '@writ/contracts/writ/run/v1/run_pb';
import { SpawnBudgetService } from '@writ/contracts/writ/spawn/v1/spawn_budget_service_pb';
import { AgentWorkerService } from '@writ/contracts/writ/worker/v1/agent_worker_service_pb';
import { ManualClock } from '@writ/kernel';
import { isPostgresAvailable, postgresLocation } from '@writ/testing/postgres';
import { afterEach, describe, expect, it } from 'vitest';
import type { SupervisorConfig } from '../src/config.ts';
import type { SupervisorStore } from '../src/store/supervisor-store.ts';
import { createTenantRate } from '../src/store/tenant-rate.ts';
import { openBeside, SupervisorUnderTest } from './supervisor-under-test.ts';

const START = { agent: 'worker', goal: 'Do it.' };

describe.runIf(isPostgresAvailable())('two supervisors on one PostgreSQL schema (SYS-5)', () => {
  let supervisor: SupervisorUnderTest;
  let other: string;

  const start = async (config: Partial<SupervisorConfig> = {}): Promise<void> => {
    supervisor = await SupervisorUnderTest.start({
      config: { store: await postgresLocation(), ...config },
    });
    other = (await supervisor.beside()).edgeAddress;
  };

  afterEach(() => supervisor.close());

  it('start no more runs of a tenant together than its quota (SYS-6)', async () => {
    await start({ maxRunsPerTenant: 5 });
    const doors = [supervisor.runs('anna'), supervisor.runs('anna', other)];
    const outcomes = await Promise.allSettled(
      Array.from({ length: 20 }, async (_, index) =>
        doors[index % 2]?.startRun({ requestId: `r-${index}`, ...START }),
      ),
    );
    const refusals = outcomes.flatMap((outcome) =>
      outcome.status === 'rejected' ? [outcome.reason.reason] : [],
    );
    expect(refusals).toEqual(Array(15).fill('RUN_QUOTA_EXCEEDED'));
  });

  it('drive each order of a run at one of them, so that no peer is asked twice (SUP-8, AG-7)', async () => {
    await start();
    const doors = [supervisor.runs('anna'), supervisor.runs('anna', other)];
    const runs = await Promise.all(
      Array.from({ length: 10 }, async (_, index) => {
        const { run } =
          (await doors[index % 2]?.startRun({ requestId: `r-${index}`, ...START })) ?? {};
        const runId = run?.runId ?? '';
        await doors[(index + 1) % 2]?.cancelRun({ requestId: `c-${index}`, runId });
        return runId;
      }),
    );
    for (const runId of runs) {
      const state = async () => (await supervisor.runs().getRun({ runId })).run?.state;
      await expect.poll(state).toBe(RunState.CANCELLED);
    }
    const { fakes } = supervisor;
    const closed = fakes.requests(SpawnBudgetService.method.closePool);
    expect(closed.map(({ runId }) => runId).toSorted()).toEqual(runs.toSorted());
    const delivered = fakes.requests(AgentWorkerService.method.deliver);
    expect(delivered.length).toBeLessThanOrEqual(runs.length);
  });

  it('tell whoever watches a run at one of them what happened at the other (SYS-5)', async () => {
    await start({ watchPollMs: 60_000 });
    const { run } = await supervisor.runs().startRun({ requestId: 'r-1', ...START });
    const runId = run?.runId ?? '';
    await supervisor.fakes.called(AgentWorkerService.method.deliver);
    const watched = Array.fromAsync(supervisor.runs('anna', other).watchRun({ runId }));
    await supervisor.runs().cancelRun({ requestId: 'c-1', runId });
    expect((await watched).length).toBeGreaterThan(1);
  });

  it('take so many calls of a tenant together (SYS-6)', async () => {
    await start();
    const clock = new ManualClock(new Date());
    const stores = [await openBeside(supervisor), await openBeside(supervisor)];
    const takes = stores.map((store) =>
      createTenantRate(store, { perSecond: 5, burst: 10 }, clock),
    );
    const made = async (tenant: string) => {
      const calls = Array.from({ length: 40 }, async (_, index) => takes[index % 2]?.(tenant));
      const outcomes = await Promise.allSettled(calls);
      const reasons = outcomes.flatMap((each) =>
        each.status === 'rejected' ? [each.reason.reason] : [],
      );
      expect(new Set(reasons)).toEqual(new Set(['RATE_LIMITED']));
      return outcomes.length - reasons.length;
    };
    expect(await made('acme')).toBe(10);
    clock.advance(1_000);
    expect(await made('acme')).toBe(5);
    expect(await made('rivals')).toBe(10);
    for (const store of stores) await store.close();
  });

  it('go on taking calls of a tenant after the clock of one was far ahead for a moment (SYS-6)', async () => {
    await start();
    const stores = [await openBeside(supervisor), await openBeside(supervisor)];
    const right = new ManualClock(new Date());
    let wrongByMs = 3_600_000;
    const wrong = { now: () => new Date(right.now().getTime() + wrongByMs) };
    const [take, takeAhead] = [right, wrong].map((clock, index) =>
      createTenantRate(stores[index] as SupervisorStore, { perSecond: 5, burst: 1 }, clock),
    );
    const limited = { reason: 'RATE_LIMITED' };
    await takeAhead?.('acme');
    await expect(Promise.resolve(takeAhead?.('acme'))).rejects.toMatchObject(limited);
    wrongByMs = 0;
    await expect(Promise.resolve(take?.('acme'))).rejects.toMatchObject(limited);
    right.advance(1_000);
    await take?.('acme');
    right.advance(1_000);
    await takeAhead?.('acme');
    for (const store of stores) await store.close();
  });
});
