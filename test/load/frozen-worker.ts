import assert from 'node:assert/strict';
import { setTimeout as pause } from 'node:timers/promises';
import { RunState } from '@writ/contracts/writ/run/v1/run_pb';
import { readLedger } from '@writ/example-refund-desk/ledger';
import { startFaultProxy } from '@writ/testing/faults';
import { startTestPlatform, type TestPlatform } from '@writ/testing/platform';
import { seeded } from '@writ/testing/random';
import { recordedAnswers, repeatedModelCalls } from '../e2e/platform-process.ts';
import { until } from '../e2e/scripted/until.ts';
import { ForkedWorker } from './forked-worker.ts';
import { WorkerDatabase } from './worker-database.ts';

/**
 * The number of the first transaction that writes under the lease; the transaction before it is the delivery, which
 * acquires the lease.
 */
const FIRST_LEASED_WRITE = 2;
/** Approximate duration of a run. */
const RUN_MS = 60;

/**
 * Freezes (SIGSTOP) the worker that runs an agent, so that the lease of the agent expires. The other worker on the same
 * store takes over and finishes the run; then the test thaws the frozen worker. The store refuses the next write of the
 * thawed worker, and no row of the run changes (RT-2). Every second round freezes the worker right before a write,
 * after all checks except the lease check in the write itself; all other rounds freeze it at a random moment.
 */
export async function frozenWorker({ rounds, seed }: { rounds: number; seed: number }) {
  const random = seeded(seed);
  const target: { worker?: ForkedWorker } = {};
  const proxy = await startFaultProxy(() => target.worker?.address ?? '');
  const test = await startTestPlatform({
    reroute: async (service, address) => (service === 'agent-worker' ? proxy.address : address),
  });
  const workers: ForkedWorker[] = [];
  try {
    const frozen = await ForkedWorker.start(test, 'worker-a');
    workers.push(frozen);
    target.worker = frozen;
    const other = await ForkedWorker.start(test, 'worker-b');
    workers.push(other);
    const database = new WorkerDatabase(test);
    const lastWrite = await undisturbedRun(test, frozen, database);
    const takenOver = new Map<string, string>();
    let attempted = 0;
    let refused = 0;
    for (let tries = 0; takenOver.size < rounds; tries += 1) {
      const span = lastWrite - FIRST_LEASED_WRITE + 1;
      const isLast = takenOver.size === rounds - 1 && attempted === 0;
      const isAtWrite = tries % 2 === 0 || isLast;
      const before = isAtWrite ? FIRST_LEASED_WRITE + Math.floor(random() * span) : 0;
      await frozen.send({ kind: 'freeze', before });
      const runId = await begin(test, `round-${tries}`);
      if (before === 0) {
        await database.until(runId, ({ owner, ended }) => owner === 'worker-a' || ended);
        await pause(random() * RUN_MS);
        frozen.signal('SIGSTOP');
      } else {
        const isOver = database.until(runId, ({ ended }) => ended);
        const freezing = await Promise.race([frozen.next('freezing'), isOver]);
        if (freezing === undefined) continue;
      }
      await frozen.untilStopped();
      // The supervisor reaches the other worker after the connection to the frozen worker has timed out.
      target.worker = other;
      const { owner, epoch } = database.agent(runId);
      // A worker that is frozen inside a transaction keeps the database locked.
      if (owner === 'worker-a' && database.isUnlocked()) {
        await database.until(runId, (agent) => agent.ended && agent.epoch > epoch);
        takenOver.set(runId, database.rows(runId));
      }
      const thawed = before === 0 ? undefined : frozen.next('thawed');
      frozen.signal('SIGCONT');
      target.worker = frozen;
      // Closes connections to the other worker.
      proxy.fail('down');
      proxy.fail('none');
      const outcome = await thawed;
      if (outcome !== undefined && takenOver.has(runId)) {
        attempted += 1;
        assert.equal(
          outcome.refused,
          'STALE_EPOCH',
          `round ${takenOver.size}, before write ${before}`,
        );
        refused += 1;
      }
    }
    await endAll(test, takenOver.keys());
    await Promise.all(workers.map((worker) => worker.stop()));
    const changed = [...takenOver].filter(([runId, rows]) => database.rows(runId) !== rows);
    assert.deepEqual(changed, [], 'rows that changed after the thaw');
    database.close();
    return {
      'runs taken over': takenOver.size,
      'runs changed after the thaw': changed.length,
      'writes attempted after the thaw': attempted,
      'writes refused after the thaw': refused,
      ...checkEffects(test, [...takenOver.keys()]),
    };
  } finally {
    for (const worker of workers) worker.kill();
    await proxy.close();
    await test.close();
  }
}

/** Runs one agent to its end; returns the number of transactions. */
async function undisturbedRun(
  test: TestPlatform,
  worker: ForkedWorker,
  database: WorkerDatabase,
): Promise<number> {
  for (let tries = 0; ; tries += 1) {
    await worker.send({ kind: 'freeze', before: 0 });
    const runId = await begin(test, `undisturbed-${tries}`);
    await database.until(runId, ({ ended }) => ended);
    const { transactions } = await worker.send({ kind: 'freeze', before: 0 });
    // The other worker may have claimed the agent first.
    if (transactions >= FIRST_LEASED_WRITE && database.agent(runId).epoch === 1)
      return transactions;
  }
}

async function begin({ client }: TestPlatform, requestId: string): Promise<string> {
  const { run } = await client.runs.startRun({
    requestId,
    agent: 'refund-worker',
    goal: 'Refund the plan of user 42.',
    model: 'sim-auto-1000',
  });
  assert.ok(run);
  return run.runId;
}

async function endAll({ client }: TestPlatform, runIds: Iterable<string>): Promise<void> {
  for (const runId of runIds) {
    await until(`the end of ${runId}`, async () => {
      const { run } = await client.runs.getRun({ runId });
      return run?.state === RunState.COMPLETED || undefined;
    });
  }
}

/** Checks that each run issued one refund and that no recorded model answer was requested again. */
function checkEffects({ dataDir }: TestPlatform, runIds: readonly string[]) {
  const refunds = readLedger(dataDir)
    .refunds.map(({ run_id: id }) => id)
    .filter((id) => runIds.includes(id));
  assert.deepEqual(refunds.toSorted(), runIds.toSorted(), 'refunds');
  const repeated = repeatedModelCalls(dataDir, recordedAnswers(dataDir));
  assert.deepEqual(repeated, [], 'model answers requested again');
  return { 'refunds issued': refunds.length, 'model answers requested again': repeated.length };
}
