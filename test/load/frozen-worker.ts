import assert from 'node:assert/strict';
import { setTimeout as pause } from 'node:timers/promises';
import { RunState } from '@writ/contracts/writ/run/v1/run_pb';
import { readLedger } from '@writ/example-refund-desk/ledger';
import { startFaultProxy } from '@writ/testing/faults';
import { startTestPlatform, type TestPlatform } from '@writ/testing/platform';
import { askedAgain, recordedAnswers } from '../e2e/platform-process.ts';
import { until } from '../e2e/scripted/until.ts';
import { ForkedWorker } from './forked-worker.ts';
import { seeded } from './random.ts';
import { WorkerBook } from './worker-book.ts';

/** Deliver and claim come before the first write under a lease. */
const FIRST_LEASED_WRITE = 3;
/** About as long as a run takes. */
const RUN_MS = 60;

/**
 * Two worker processes on one store: the one that runs an agent is frozen (SIGSTOP) past its lease, the
 * other one takes the agent over and finishes it, the first one is thawed. What it then tries to write
 * is refused, and not a row of the run changes any more (RT-2). In every other round it is frozen right
 * before a write, when everything was checked but the lease in the write itself; else at any moment.
 */
export async function frozenWorker({ rounds, seed }: { rounds: number; seed: number }) {
  const random = seeded(seed);
  const known: { worker?: ForkedWorker } = {};
  const wire = await startFaultProxy(() => known.worker?.address ?? '');
  const test = await startTestPlatform({
    reroute: async (service, address) => (service === 'agent-worker' ? wire.address : address),
  });
  const workers: ForkedWorker[] = [];
  try {
    const frozen = await ForkedWorker.start(test, 'worker-a');
    workers.push(frozen);
    known.worker = frozen;
    workers.push(await ForkedWorker.start(test, 'worker-b'));
    const book = new WorkerBook(test);
    const lastWrite = await undisturbed(test, frozen, book);
    const left = new Map<string, string>();
    let refused = 0;
    for (let tries = 0; left.size < rounds; tries += 1) {
      const span = lastWrite - FIRST_LEASED_WRITE + 1;
      const before = tries % 2 === 0 ? FIRST_LEASED_WRITE + Math.floor(random() * span) : 0;
      await frozen.order({ kind: 'freeze', before });
      const runId = await begin(test, `round-${tries}`);
      if (before === 0) {
        await book.until(runId, ({ owner, ended }) => owner === 'worker-a' || ended);
        await pause(random() * RUN_MS);
        frozen.signal('SIGSTOP');
      } else {
        const isOver = book.until(runId, ({ ended }) => ended);
        const freezing = await Promise.race([frozen.news('freezing'), isOver]);
        if (freezing === undefined) continue;
      }
      await frozen.standsStill();
      const { owner, epoch } = book.agent(runId);
      // Who is frozen in the middle of a transaction keeps the file locked for everybody.
      if (owner === 'worker-a' && book.isFree()) {
        await book.until(runId, (agent) => agent.ended && agent.epoch > epoch);
        left.set(runId, book.rows(runId));
      }
      const thawed = before === 0 ? undefined : frozen.news('thawed');
      frozen.signal('SIGCONT');
      const outcome = await thawed;
      if (outcome !== undefined && left.has(runId)) {
        assert.equal(outcome.refused, 'STALE_EPOCH', `round ${left.size}, before write ${before}`);
        refused += 1;
      }
    }
    await endAll(test, left.keys());
    await Promise.all(workers.map((worker) => worker.stop()));
    for (const [runId, rows] of left) assert.equal(book.rows(runId), rows, runId);
    book.close();
    assertDoneOnce(test, left.keys());
    return { rounds, 'writes tried right after the thaw, and refused': refused };
  } finally {
    for (const worker of workers) worker.kill();
    await wire.close();
    await test.close();
  }
}

/** Has the worker run one from its beginning to its end; answers in how many transactions. */
async function undisturbed(
  test: TestPlatform,
  worker: ForkedWorker,
  book: WorkerBook,
): Promise<number> {
  for (let tries = 0; ; tries += 1) {
    await worker.order({ kind: 'freeze', before: 0 });
    const runId = await begin(test, `undisturbed-${tries}`);
    await book.until(runId, ({ ended }) => ended);
    const { transactions } = await worker.order({ kind: 'freeze', before: 0 });
    // The other worker may have been faster.
    if (transactions > FIRST_LEASED_WRITE && book.agent(runId).epoch === 1) return transactions;
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

function assertDoneOnce({ dataDir }: TestPlatform, runIds: Iterable<string>): void {
  const refunds = readLedger(dataDir).refunds.map(({ run_id: id }) => id);
  for (const runId of runIds) assert.equal(refunds.filter((id) => id === runId).length, 1, runId);
  assert.deepEqual(askedAgain(dataDir, recordedAnswers(dataDir)), []);
}
