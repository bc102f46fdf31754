import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { RunState } from '@writ/contracts/writ/run/v1/run_pb';
import { startTestPlatform } from '@writ/testing/platform';
import { expect, it, onTestFinished, vi } from 'vitest';

const LIMITS = { timeout: 60_000, interval: 50 };

it('ends a run that its worker has lost, closes its tab and pool, and keeps the others (BD-3)', async () => {
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
  // A tab and a pool that the end of their run has missed.
  open('execution-meter').prepare("update tabs set state = 'open' where run_id = ?").run(lost);
  open('spawn-budget').prepare('update pools set closed_at = null where run_id = ?').run(lost);
  await vi.waitFor(() => {
    expect(tabs.all()).toEqual([{ run_id: kept }]);
    expect(pools.all()).toEqual([{ run_id: kept }]);
  }, LIMITS);
  expect((await runs.getRun({ runId: kept })).run?.state).toBe(RunState.SUSPENDED);
});
