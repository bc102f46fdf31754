import { isPostgresAvailable, postgresLocation } from '@writ/testing/postgres';
import { describe, expect, it, onTestFinished } from 'vitest';
import { ScriptedModel } from './scripted-model.ts';
import { World } from './world.ts';

const RUNS = ['run-1', 'run-2', 'run-3', 'run-4', 'run-5', 'run-6'];
/** Longer than the test, because a lease renewal would update all agents of a worker. */
const LEASE_TTL_MS = 3_600_000;
/** One transaction stays open during a whole run, which can be slow on a busy machine. */
const limits = { statementTimeoutMs: 100_000 };

async function startScripts(): Promise<ScriptedModel> {
  const scripts = await ScriptedModel.start();
  onTestFinished(() => scripts[Symbol.asyncDispose]());
  return scripts;
}

describe.runIf(isPostgresAvailable())('workers on one PostgreSQL schema', () => {
  it('run an agent while a transaction of another run is open (SYS-5, RT-3)', async () => {
    const scripts = await startScripts();
    const world = await World.start({ model: scripts.model('escalate-1200') });
    const store = { ...(await postgresLocation()), limits };
    const worker = await world.startWorker({ store, leaseTtlMs: LEASE_TTL_MS });
    const begun = Promise.withResolvers<void>();
    const released = Promise.withResolvers<void>();
    const held = worker.store.transaction(
      async () => {
        begun.resolve();
        await released.promise;
      },
      { run: { tenant: 'acme', runId: 'another-run' } },
    );
    await begun.promise;
    await world.deliver();
    await world.until('SUSPENDED');
    await world.approve('op-4', { args: { amount_usd: 800 } });
    await world.until('COMPLETED');
    released.resolve();
    await held;
  });

  it('execute each call of their runs once, even if one worker suspends a run and another resumes it (SYS-5, RT-2, TG-1)', async () => {
    const scripts = await startScripts();
    const world = await World.start({ model: scripts.model('escalate-1200') });
    const store = await postgresLocation();
    const workers = [
      await world.startWorker({ store }),
      await world.startWorker({ store, workerId: 'worker-2' }),
    ];
    const send = async <T>(index: number, request: () => Promise<T>): Promise<T> => {
      world.callWorkerAt(workers[index % 2]?.address ?? '');
      return await request();
    };
    await Promise.all(
      RUNS.map(async (runId, index) => {
        await send(index, () => world.deliver({ runId }));
        await world.until('SUSPENDED', runId);
        const answer = { args: { amount_usd: 800 } };
        await send(index + 1, () => world.approve('op-4', answer, runId));
        await world.until('COMPLETED', runId);
      }),
    );
    for (const runId of RUNS) {
      expect(world.supervisor.endings.get(runId)?.answer).toMatch(/^800 USD/);
    }
    // Each call is executed exactly once for each run.
    const executed = Map.groupBy(world.gateway.executed, (call) => call);
    for (const [call, times] of executed) expect([call, times.length]).toEqual([call, RUNS.length]);
    expect(executed.size).toBeGreaterThan(1);
  });
});
