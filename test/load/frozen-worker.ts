import assert from 'node:assert/strict';
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { AGENT_WORKER_DEFAULTS } from '@writ/agent-worker';
import { RunState } from '@writ/contracts/writ/run/v1/run_pb';
import { readLedger } from '@writ/example-refund-desk/ledger';
import { startTestPlatform, type TestPlatform } from '@writ/testing/platform';
import { askedAgain, recordedAnswers } from '../e2e/platform-process.ts';
import { until } from '../e2e/scripted/until.ts';
import { TcpProxy } from '../e2e/tcp-proxy.ts';
import type { WorkerNews, WorkerOrder, WorkerSettings } from './frozen-worker-child.ts';
import { seeded } from './random.ts';

const CHILD = fileURLToPath(new URL('frozen-worker-child.ts', import.meta.url));
/** Tables in which a worker writes under a lease. */
const TABLES = ['agents', 'journal', 'payloads', 'signals', 'timers', 'inbox', 'history'];
/** Deliver and claim come before the first write under a lease. */
const FIRST_LEASED_WRITE = 3;
/** About as long as a run takes. */
const RUN_MS = 60;
const LEASE_MS = 400;

/**
 * Two worker processes on one store: the one that runs an agent is frozen (SIGSTOP) past its lease, the
 * other one takes the agent over and finishes it, the first one is thawed. What it then tries to write
 * is refused, and not a row of the run changes any more (RT-2). In every other round it is frozen right
 * before a write, when everything was checked but the lease in the write itself; else at any moment.
 */
export async function frozenWorker({ rounds, seed }: { rounds: number; seed: number }) {
  const random = seeded(seed);
  const known: { worker?: Worker } = {};
  const wire = await TcpProxy.start(() => known.worker?.address ?? '');
  const test = await startTestPlatform({
    reroute: async (service, address) => (service === 'agent-worker' ? wire.address : address),
  });
  const workers: Worker[] = [];
  try {
    const frozen = await Worker.start(test, 'worker-a');
    workers.push(frozen);
    known.worker = frozen;
    workers.push(await Worker.start(test, 'worker-b'));
    const book = new Book(test);
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
        if ((await Promise.race([frozen.news('freezing'), isOver]))?.kind !== 'freezing') continue;
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
    wire.close();
    await test.close();
  }
}

/** Has the worker run one from its beginning to its end; answers in how many transactions. */
async function undisturbed(test: TestPlatform, worker: Worker, book: Book): Promise<number> {
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

/** What stands in the store that the two share. */
class Book {
  readonly #database: DatabaseSync;

  constructor({ dataDir }: TestPlatform) {
    this.#database = new DatabaseSync(storeIn(dataDir), { timeout: 300 });
  }

  agent(runId: string): { owner: string; epoch: number; ended: boolean } {
    const row = this.#database.prepare('SELECT * FROM agents WHERE run_id = ?').get(runId);
    return {
      owner: String(row?.lease_owner ?? ''),
      epoch: Number(row?.epoch ?? 0),
      ended: typeof row?.ended_at === 'number' || typeof row?.ended_at === 'string',
    };
  }

  /** Resolves when the agent of a run is as it should be. */
  async until(
    runId: string,
    is: (agent: ReturnType<Book['agent']>) => boolean,
  ): Promise<undefined> {
    const look = () => is(this.agent(runId)) || undefined;
    await until(`the agent of ${runId}`, look, 2);
  }

  /** Whether nobody is in the middle of a transaction. */
  isFree(): boolean {
    try {
      this.#database.exec('BEGIN IMMEDIATE');
    } catch {
      return false;
    }
    this.#database.exec('ROLLBACK');
    return true;
  }

  /** Everything that the workers have written about a run, as text. */
  rows(runId: string): string {
    const rows = (table: string) =>
      this.#database.prepare(`SELECT * FROM ${table} WHERE run_id = ?`).all(runId);
    // Events are only added while nobody takes them.
    const events = this.#database.prepare('SELECT * FROM outbox').all();
    const about = events.filter((event) => String(event.subject).includes(runId));
    return JSON.stringify([...TABLES.map(rows), about], (_, value: unknown) =>
      typeof value === 'bigint' ? String(value) : value,
    );
  }

  close(): void {
    this.#database.close();
  }
}

/** One of the two. */
class Worker {
  readonly address: string;
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess, address: string) {
    this.#child = child;
    this.address = address;
  }

  static async start({ dataDir, platform }: TestPlatform, workerId: string): Promise<Worker> {
    const settings: WorkerSettings = {
      addresses: platform.addresses,
      config: {
        ...AGENT_WORKER_DEFAULTS,
        port: 0,
        dataDir,
        store: { dialect: 'sqlite', file: storeIn(dataDir) },
        workerId,
        leaseTtlMs: LEASE_MS,
        // Only the one that agents are delivered to takes them up before their lease is over.
        pollMs: LEASE_MS / 2,
        drainMs: 500,
      },
    };
    const child = fork(CHILD, [JSON.stringify(settings)], { execArgv: [] });
    const { address } = await newsOf(child, 'up');
    return new Worker(child, address);
  }

  news<K extends WorkerNews['kind']>(kind: K): Promise<Extract<WorkerNews, { kind: K }>> {
    return newsOf(this.#child, kind);
  }

  /** Gives an order; answers how many transactions there were since the last one. */
  async order(order: Extract<WorkerOrder, { kind: 'freeze' }>) {
    const counted = this.news('count');
    this.#child.send(order);
    return await counted;
  }

  signal(name: 'SIGSTOP' | 'SIGCONT'): void {
    this.#child.kill(name);
  }

  /** Resolves when the kernel says that it is stopped. */
  async standsStill(): Promise<void> {
    const stat = `/proc/${this.#child.pid}/stat`;
    const isStopped = () => / T /.test(readFileSync(stat, 'utf8')) || undefined;
    await until('the worker to stand still', isStopped, 1);
  }

  async stop(): Promise<void> {
    const exited = once(this.#child, 'exit');
    this.#child.send({ kind: 'stop' } satisfies WorkerOrder);
    await exited;
  }

  kill(): void {
    this.#child.kill('SIGKILL');
  }
}

function newsOf<K extends WorkerNews['kind']>(
  child: ChildProcess,
  kind: K,
): Promise<Extract<WorkerNews, { kind: K }>> {
  return new Promise((found, fail) => {
    const look = (news: WorkerNews) => {
      if (news.kind !== kind) return;
      child.off('message', look);
      found(news as Extract<WorkerNews, { kind: K }>);
    };
    child.on('message', look);
    child.once('exit', () => fail(new Error(`A worker ended before it said ${kind}.`)));
  });
}

function storeIn(dataDir: string): string {
  return join(dataDir, 'two-workers.db');
}
