import { Supervision, systemClock } from '@writ/kernel';
import type { TransactionOptions } from '@writ/store';
import { createTelemetry } from '@writ/telemetry';
import { isPostgresAvailable, postgresLocation } from '@writ/testing/postgres';
import { describe, expect, it, onTestFinished } from 'vitest';
import { supervisionText } from '../src/domain/agent/supervision.ts';
import { ClaimLoop } from '../src/runtime/leases/claim-loop.ts';
import { fireTimers } from '../src/runtime/timers.ts';
import { insertAgent } from '../src/store/agents.ts';
import { openWorkerStore, type WorkerStore } from '../src/store/worker-store.ts';
import { AGENT } from './delivery.ts';
import { inactiveAgentRow } from './inactive-agent-row.ts';

const { log } = createTelemetry({ service: 'test', logLevel: 'silent' });
const AGENTS = 100;
const AT = new Date('2026-01-01T00:00:00Z');
/**
 * Maximum number of runs that one transaction can lock; a transaction with more runs is serialized with all other
 * transactions.
 */
const MAX_RUNS = 32;
const TRACEPARENT = `00-${'1'.repeat(32)}-${'2'.repeat(16)}-01`;
const POLL_MS = 20;
/** Number of reads in a poll: the next timer, agents without a lease, agents with an expired lease, and due agents. */
const READS = 4;

/** Store operations of a worker. */
interface Counts {
  /** Statements outside of transactions. */
  reads: number;
  readonly transactions: TransactionOptions[];
}

/** Counts the reads and transactions of `store`. */
function counted(store: WorkerStore): { readonly store: WorkerStore; readonly counts: Counts } {
  const counts: Counts = { reads: 0, transactions: [] };
  const db = store.db.withPlugin({
    transformQuery: ({ node }) => {
      counts.reads += 1;
      return node;
    },
    transformResult: async ({ result }) => result,
  });
  const transaction: WorkerStore['transaction'] = (work, options = {}) => {
    counts.transactions.push(options);
    return store.transaction(work, options);
  };
  const proxy = new Proxy(store, {
    get(target, name) {
      if (name === 'db') return db;
      if (name === 'transaction') return transaction;
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
  return { store: proxy, counts };
}

/** Starts the claim loop of a worker whose agents run until it stops; returns the claimed agents with their epochs. */
async function startClaims(store: WorkerStore, workerId: string): Promise<Set<string>> {
  const claimed = new Set<string>();
  const stopped = Promise.withResolvers<'released'>();
  const settings = {
    workerId,
    tenants: [],
    pollMs: POLL_MS,
    maxConcurrentAgents: 64,
    leaseTtlMs: 3_600_000,
    drainMs: 1_000,
  };
  const loop = new ClaimLoop({
    store,
    clock: systemClock,
    sharedNow: () => systemClock.now(),
    log,
    settings,
    run: async ({ lease }) => {
      claimed.add(`${lease.runId} ${lease.epoch}`);
      return (await stopped.promise) as never;
    },
  });
  await loop.start();
  onTestFinished(async () => {
    stopped.resolve('released');
    await loop.stop();
  });
  return claimed;
}

describe.runIf(isPostgresAvailable())('workers on one PostgreSQL schema', () => {
  it('claim the agents of at most 32 runs in a transaction, each agent once (SYS-5, RT-2)', async () => {
    const location = await postgresLocation();
    const stores = [counted(await open(location)), counted(await open(location))] as const;
    const [{ store }] = stores;
    await store.transaction(async (trx) => {
      for (let n = 0; n < AGENTS; n += 1) {
        const supervision = supervisionText(Supervision.root(AGENT, { runId: `run-${n}` }));
        const row = { run_id: `run-${n}`, state: 'RUNNING', waiting_for: '[]', epoch: 0n };
        await insertAgent(trx, inactiveAgentRow({ ...row, supervision, traceparent: TRACEPARENT }));
      }
    });
    for (const { counts } of stores) counts.transactions.length = 0;
    const claimed = await Promise.all(
      stores.map(({ store: own }, index) => startClaims(own, `worker-${index}`)),
    );
    const all = () => claimed.flatMap((own) => [...own]);
    await expect.poll(() => all().length).toBe(AGENTS);
    // No agent was claimed twice: each has its first epoch.
    expect(all().toSorted()).toEqual(
      Array.from({ length: AGENTS }, (_, n) => `run-${n} 1`).toSorted(),
    );
    const claims = stores.flatMap(({ counts }) =>
      counts.transactions.flatMap(({ runs }) => (runs ? [runs.length] : [])),
    );
    expect(Math.max(...claims)).toBeLessThanOrEqual(MAX_RUNS);
    expect(claims.length).toBeGreaterThanOrEqual(Math.ceil(AGENTS / MAX_RUNS));
  });

  it('fire all due timers, of at most 32 runs per transaction (SYS-5, RT-3)', async () => {
    const { store, counts } = counted(await open(await postgresLocation()));
    await store.transaction(async (trx) => {
      for (let n = 0; n < AGENTS; n += 1) {
        const run_id = `run-${n}`;
        const row = inactiveAgentRow({ run_id, waiting_for: '["due"]' });
        await insertAgent(trx, row);
        const { tenant, instance } = row;
        const due = { timer_id: 'timer', name: 'due', payload: '{}', due_at: AT };
        await trx
          .insertInto('timers')
          .values({ tenant, run_id, instance, ...due } as never)
          .execute();
      }
    });
    counts.transactions.length = 0;
    const left = () => store.db.selectFrom('timers').select('timer_id').execute();
    for (let batch = 0; (await left()).length > 0; batch += 1) {
      expect(batch).toBeLessThan(AGENTS);
      await fireTimers(store, systemClock, []);
    }
    const sizes = counts.transactions.map(
      ({ runs = [] }) => new Set(runs.map(({ runId }) => runId)).size,
    );
    expect(sizes).toEqual([MAX_RUNS, MAX_RUNS, MAX_RUNS, AGENTS - 3 * MAX_RUNS]);
    const signals = await store.db.selectFrom('signals').select('run_id').execute();
    expect(new Set(signals.map(({ run_id }) => run_id)).size).toBe(AGENTS);
  });
});

it('an idle worker polls with four reads and no transaction (SYS-5)', async () => {
  const { store, counts } = counted(await open({ dialect: 'sqlite', file: ':memory:' }));
  const from = performance.now();
  await startClaims(store, 'worker-1');
  await expect.poll(() => counts.reads).toBeGreaterThan(20 * READS);
  const polls = counts.reads / READS;
  expect(polls).toBeLessThanOrEqual(1 + (performance.now() - from) / POLL_MS);
  // The start reclaims the leases of an earlier process.
  expect(counts.transactions).toHaveLength(1);
});

async function open(location: Parameters<typeof openWorkerStore>[0]): Promise<WorkerStore> {
  const store = await openWorkerStore(location);
  onTestFinished(() => store.close());
  return store;
}
