import { ControlService } from '@writ/contracts/writ/control/v1/control_service_pb';
import { RunState } from '@writ/contracts/writ/run/v1/run_pb';
import { SpawnBudgetService } from '@writ/contracts/writ/spawn/v1/spawn_budget_service_pb';
import { AgentWorkerService } from '@writ/contracts/writ/worker/v1/agent_worker_service_pb';
import { ManualClock } from '@writ/kernel';
import { isPostgresAvailable, postgresLocation } from '@writ/testing/postgres';
import { afterEach, describe, expect, it } from 'vitest';
import { StartAdmission } from '../src/app/order/start-admission.ts';
import type { SupervisorConfig } from '../src/config.ts';
import type { SupervisorContext } from '../src/context.ts';
import { StartQueue } from '../src/domain/admission/start-queue.ts';
import type { OrderRow } from '../src/store/change/commit-notes.ts';
import { saveRun } from '../src/store/run/runs.ts';
import type { SupervisorStore } from '../src/store/supervisor-store.ts';
import { createTenantRate } from '../src/store/tenant-rate.ts';
import { openSecondStore, SupervisorUnderTest } from './supervisor-under-test.ts';

const START = { agent: 'worker', goal: 'Do it.' };
const LIMITS = { maxQueuedRuns: 10, maxQueuedRunsPerTenant: 10 };

describe.runIf(isPostgresAvailable())('two supervisors on one PostgreSQL schema (SYS-5)', () => {
  let supervisor: SupervisorUnderTest;
  let other: string;

  const start = async (config: Partial<SupervisorConfig> = {}): Promise<void> => {
    supervisor = await SupervisorUnderTest.start({
      config: { store: await postgresLocation(), ...config },
    });
    other = (await supervisor.startReplica()).edgeAddress;
  };

  afterEach(() => supervisor.close());

  it('enforce the run quota of a tenant together (SYS-6)', async () => {
    await start({ maxRunsPerTenant: 5 });
    const clients = [supervisor.runs('anna'), supervisor.runs('anna', other)];
    const outcomes = await Promise.allSettled(
      Array.from({ length: 20 }, async (_, index) =>
        clients[index % 2]?.startRun({ requestId: `r-${index}`, ...START }),
      ),
    );
    const refusals = outcomes.flatMap((outcome) =>
      outcome.status === 'rejected' ? [outcome.reason.reason] : [],
    );
    expect(refusals).toEqual(Array(15).fill('RUN_QUOTA_EXCEEDED'));
  });

  it('execute each order of a run once, so that no peer is called twice (SUP-8, AG-7)', async () => {
    await start();
    const clients = [supervisor.runs('anna'), supervisor.runs('anna', other)];
    const runs = await Promise.all(
      Array.from({ length: 10 }, async (_, index) => {
        const { run } =
          (await clients[index % 2]?.startRun({ requestId: `r-${index}`, ...START })) ?? {};
        const runId = run?.runId ?? '';
        await clients[(index + 1) % 2]?.cancelRun({ requestId: `c-${index}`, runId });
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

  it('deliver events of a run to a watcher at the other supervisor (SYS-5)', async () => {
    await start({ watchPollMs: 60_000 });
    const { run } = await supervisor.runs().startRun({ requestId: 'r-1', ...START });
    const runId = run?.runId ?? '';
    await supervisor.fakes.called(AgentWorkerService.method.deliver);
    const watched = Array.fromAsync(supervisor.runs('anna', other).watchRun({ runId }));
    await supervisor.runs().cancelRun({ requestId: 'c-1', runId });
    expect((await watched).length).toBeGreaterThan(1);
  });

  it('stop counting active runs that the other supervisor ended, so that they do not delay starts (BD-5)', async () => {
    await start();
    const { run } = await supervisor.runs().startRun({ requestId: 'r-1', ...START });
    const runId = run?.runId ?? '';
    const state = async () => (await supervisor.runs().getRun({ runId })).run?.state;
    await expect.poll(state).toBe(RunState.RUNNING);
    const store = await openSecondStore(supervisor);
    const starts = new StartQueue<OrderRow>(LIMITS);
    const context = { store, starts } as unknown as SupervisorContext;
    const admission = new StartAdmission(context, async () => undefined);
    admission.start();
    const key = { tenant: 'acme', runId };
    await store.transaction(
      async (trx) => await saveRun(trx, key, { state: 'RUNNING', changed_at: new Date() }),
      { run: key },
    );
    expect(starts.active).toBe(1);
    await supervisor.runs().cancelRun({ requestId: 'c-1', runId });
    await expect.poll(() => starts.active).toBe(0);
    admission.stop();
    await store.close();
  });

  it('enforce the rate limit of a tenant together (SYS-6)', async () => {
    await start();
    const clock = new ManualClock(new Date());
    const stores = [await openSecondStore(supervisor), await openSecondStore(supervisor)];
    const limiters = stores.map((store) =>
      createTenantRate(store, { perSecond: 5, burst: 10 }, clock),
    );
    const accepted = async (tenant: string) => {
      const calls = Array.from({ length: 40 }, async (_, index) => limiters[index % 2]?.(tenant));
      const outcomes = await Promise.allSettled(calls);
      const reasons = outcomes.flatMap((each) =>
        each.status === 'rejected' ? [each.reason.reason] : [],
      );
      expect(new Set(reasons)).toEqual(new Set(['RATE_LIMITED']));
      return outcomes.length - reasons.length;
    };
    expect(await accepted('acme')).toBe(10);
    clock.advance(1_000);
    expect(await accepted('acme')).toBe(5);
    expect(await accepted('rivals')).toBe(10);
    for (const store of stores) await store.close();
  });

  it('accept halts of a tenant whose calls exceed the rate limit (BD-2)', async () => {
    await start({ tenantRate: { perSecond: 0.001, burst: 1 } });
    const limited = { reason: 'RATE_LIMITED' };
    await supervisor.runs('boris').listRuns({});
    await expect(supervisor.runs('boris').listRuns({})).rejects.toMatchObject(limited);
    await expect(supervisor.runs('anna', other).listRuns({})).rejects.toMatchObject(limited);
    for (const [index, address] of [undefined, other].entries()) {
      const control = supervisor.as('anna', ControlService, address);
      const scope = { kind: { case: 'tenant', value: 'acme' } } as const;
      const requestId = `halt-${index}`;
      const { halt } = await control.halt({ requestId, scope, reason: 'A flood of calls.' });
      const haltId = halt?.haltId ?? '';
      expect((await control.listHalts({})).halts.map((each) => each.haltId)).toContain(haltId);
      await control.resume({ requestId: `resume-${index}`, haltId });
    }
  });

  it('reject calls of a tenant until a token is available, measured by a monotonic clock (SYS-6, BD-3)', async () => {
    await start();
    const store = await openSecondStore(supervisor);
    const clock = new ManualClock(new Date());
    const take = createTenantRate(store, { perSecond: 5, burst: 1 }, clock);
    const limited = { reason: 'RATE_LIMITED' };
    await take('acme');
    await expect(Promise.resolve(take('acme'))).rejects.toMatchObject(limited);
    clock.step(3_600_000);
    await expect(Promise.resolve(take('acme'))).rejects.toMatchObject(limited);
    clock.advance(200);
    await take('acme');
    await store.close();
  });

  it('accept calls of a tenant after the clock of one supervisor was temporarily ahead (SYS-6)', async () => {
    await start();
    const stores = [await openSecondStore(supervisor), await openSecondStore(supervisor)];
    const clock = new ManualClock(new Date());
    let skewMs = 3_600_000;
    const skewed = {
      now: () => new Date(clock.now().getTime() + skewMs),
      monotonicMs: () => clock.monotonicMs(),
    };
    const [take, takeAhead] = [clock, skewed].map((each, index) =>
      createTenantRate(stores[index] as SupervisorStore, { perSecond: 5, burst: 1 }, each),
    );
    const limited = { reason: 'RATE_LIMITED' };
    await takeAhead?.('acme');
    await expect(Promise.resolve(takeAhead?.('acme'))).rejects.toMatchObject(limited);
    skewMs = 0;
    await expect(Promise.resolve(take?.('acme'))).rejects.toMatchObject(limited);
    clock.advance(1_000);
    await take?.('acme');
    clock.advance(1_000);
    await takeAhead?.('acme');
    for (const store of stores) await store.close();
  });
});
