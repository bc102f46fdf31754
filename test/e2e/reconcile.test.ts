import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { RunState } from '@writ/contracts/writ/run/v1/run_pb';
import { startTestPlatform } from '@writ/testing/platform';
import { expect, it, onTestFinished, vi } from 'vitest';

const LIMITS = { timeout: 60_000, interval: 50 };

it('ends a run whose agents are lost, closes its tab and pool, and does not affect other runs (BD-3)', async () => {
  const test = await startTestPlatform({ env: { WRIT_RECONCILE_INTERVAL: '100ms' } });
  onTestFinished(() => test.close());
  const { runs } = test.client;
  const open = (service: string) => {
    const database = new DatabaseSync(join(test.dataDir, `${service}.db`));
    onTestFinished(() => database.close());
    return database;
  };
  const startWaiting = async (requestId: string): Promise<string> => {
    const request = { requestId, agent: 'refund-worker', goal: 'Refund it.' };
    const { run } = await runs.startRun({ ...request, model: 'sim-escalate-1200' });
    const runId = run?.runId ?? '';
    await vi.waitFor(
      async () => expect((await runs.getRun({ runId })).run?.state).toBe(RunState.SUSPENDED),
      LIMITS,
    );
    return runId;
  };
  const lost = await startWaiting('req-1');
  const kept = await startWaiting('req-2');
  open('agent-worker').prepare('delete from agents where run_id = ?').run(lost);
  await vi.waitFor(async () => {
    const { run } = await runs.getRun({ runId: lost });
    expect(run?.result?.stopReason).toBe('error:agent_lost');
  }, LIMITS);
  const tabs = open('execution-meter').prepare("select run_id from tabs where state = 'open'");
  expect(tabs.all()).toEqual([{ run_id: kept }]);
  const pools = open('spawn-budget').prepare('select run_id from pools where closed_at is null');
  expect(pools.all()).toEqual([{ run_id: kept }]);
  // Reopens the tab and the pool, as if the end of the run had not closed them.
  open('execution-meter').prepare("update tabs set state = 'open' where run_id = ?").run(lost);
  open('spawn-budget').prepare('update pools set closed_at = null where run_id = ?').run(lost);
  await vi.waitFor(() => {
    expect(tabs.all()).toEqual([{ run_id: kept }]);
    expect(pools.all()).toEqual([{ run_id: kept }]);
  }, LIMITS);
  expect((await runs.getRun({ runId: kept })).run?.state).toBe(RunState.SUSPENDED);
});

it('closes the pool of a successful run after the first call to close it has failed (BD-3)', async () => {
  const log: string[] = [];
  const test = await startTestPlatform({
    env: { WRIT_RECONCILE_INTERVAL: '100ms', WRIT_LOG_LEVEL: 'info' },
    onLogLine: (line) => log.push(line),
  });
  onTestFinished(() => test.close());
  const { runs } = test.client;
  const database = new DatabaseSync(join(test.dataDir, 'spawn-budget.db'), { timeout: 30_000 });
  onTestFinished(() => database.close());
  const pools = database.prepare('select run_id from pools where closed_at is null');
  const logged = (message: string, runId: string) =>
    log.filter((line) => line.includes(message) && line.includes(runId));
  // With this trigger, spawn-budget cannot close a pool; all other operations work.
  database.exec(`create trigger no_end before update on pools
    when old.closed_at is null and new.closed_at is not null
    begin select raise(abort, 'The end of a pool is not stored.'); end`);
  const start = async (requestId: string): Promise<string> => {
    const request = { requestId, agent: 'refund-worker', goal: 'Refund it.' };
    return (await runs.startRun({ ...request, model: 'sim-auto-1000' })).run?.runId ?? '';
  };
  // Starts several runs, so that at least one ends without waiting for the call that closes its pool. A run whose
  // worker is slow to store the end of the agent does wait for this call.
  const started = await Promise.all(['req-1', 'req-2', 'req-3'].map(start));
  const runId = await vi.waitFor(
    () =>
      started.find((id) => logged('pool not closed yet', id).length > 0) ??
      expect.fail('No call to close a pool has failed.'),
    LIMITS,
  );
  // The run has its result, and its pool stays open.
  await vi.waitFor(async () => {
    expect((await runs.getRun({ runId })).run?.result?.stopReason).toBe('success');
  }, LIMITS);
  expect(pools.all()).toContainEqual({ run_id: runId });
  database.exec('drop trigger no_end');
  await vi.waitFor(() => expect(pools.all()).toEqual([]), LIMITS);
  const closed = 'pool closed because its run has ended or is unknown';
  expect(logged(closed, runId)).not.toEqual([]);
});
