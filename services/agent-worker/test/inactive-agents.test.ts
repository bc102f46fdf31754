import { durationFromMs } from '@bufbuild/protobuf/wkt';
import { AgentKind } from '@writ/contracts/writ/supervision/v1/manifest_pb';
import { AgentState } from '@writ/contracts/writ/worker/v1/agent_worker_service_pb';
import { systemClock } from '@writ/kernel';
import type { StoreLocation } from '@writ/store';
import { isPostgresAvailable, postgresLocation } from '@writ/testing/postgres';
import { type Insertable, sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { fireTimers } from '../src/runtime/timers.ts';
import { livingAgents } from '../src/store/agents.ts';
import { findRunnable } from '../src/store/claims.ts';
import {
  type InactivePage,
  preemptedAgents,
  suspendedAgents,
} from '../src/store/inactive-agents.ts';
import type { AgentsTable } from '../src/store/schema.ts';
import { nextDue } from '../src/store/timers.ts';
import { openWorkerStore, type WorkerStore } from '../src/store/worker-store.ts';
import { AGENT, RUN, TENANT } from './delivery.ts';
import type { FakeModel } from './fake-meter.ts';
import { AT, inactiveAgentRow } from './inactive-agent-row.ts';
import { approveAll, LEAD } from './team.ts';
import { World } from './world.ts';

function runIds(count: number): string[] {
  return Array.from({ length: count }, (_, index) => `run-${String(index).padStart(6, '0')}`);
}

async function insertAll(store: WorkerStore, rows: readonly Insertable<AgentsTable>[]) {
  for (let from = 0; from < rows.length; from += 500) {
    await store.transaction((trx) =>
      trx
        .insertInto('agents')
        .values(rows.slice(from, from + 500))
        .execute(),
    );
  }
}

const STORES: Record<string, () => StoreLocation | Promise<StoreLocation>> = {
  sqlite: () => ({ dialect: 'sqlite', file: ':memory:' }),
  ...(isPostgresAvailable() && { postgres: postgresLocation }),
};

describe.each(Object.entries(STORES))('inactive agents in %s', (_, locate) => {
  const FEW = 300;
  const MANY = 20_000;
  let store: WorkerStore;

  beforeAll(async () => {
    store = await openWorkerStore(await locate());
  });

  afterAll(() => store.close());

  const ONE = { tenant: TENANT, runId: 'run-000000', instance: AGENT.instance };
  const first: InactivePage = { tenants: [], after: undefined, limit: 256 };

  /**
   * The queries of a worker's rounds, for all tenants and for some tenants, and the presence query of the supervisor's
   * sweep.
   */
  const queries: Record<string, () => Promise<unknown>> = {
    'presence of one': () => livingAgents(store.db, [ONE]),
  };
  for (const tenants of [[], [TENANT], ['beta', TENANT]]) {
    const scope = tenants.length === 0 ? 'all' : tenants.join('+');
    const page = { ...first, tenants };
    queries[`preempted of ${scope}`] = () => preemptedAgents(store.db, page);
    queries[`suspended of ${scope}`] = () => suspendedAgents(store.db, page);
    queries[`runnable of ${scope}`] = () => findRunnable(store.db, AT, 64, tenants);
    queries[`timers of ${scope}`] = () => fireTimers(store, systemClock, tenants);
    queries[`next timer of ${scope}`] = () => nextDue(store.db, tenants);
  }

  it('are read in pages in key order, of all tenants or of some (SB-8, SYS-6)', async () => {
    for (const tenant of [TENANT, 'beta', 'gamma']) {
      const parked = runIds(FEW).map((run_id) => inactiveAgentRow({ tenant, run_id }));
      const asleep = runIds(FEW).map((run_id) =>
        inactiveAgentRow({ tenant, run_id, instance: 'suspended-1', state: 'SUSPENDED' }),
      );
      await insertAll(store, [...parked, ...asleep]);
    }
    await insertAll(store, [
      inactiveAgentRow({ run_id: 'halted', wake_at: new Date(AT.getTime() + 1) }),
    ]);
    for (const tenants of [[], ['gamma', TENANT]]) {
      const seen: string[] = [];
      let page: InactivePage = { ...first, tenants };
      for (;;) {
        const rows = await preemptedAgents(store.db, page);
        seen.push(...rows.map(({ tenant, run_id }) => `${tenant}/${run_id}`));
        const last = rows.at(-1);
        if (last === undefined) break;
        const { tenant, run_id: runId, instance } = last;
        page = { ...page, after: { tenant, runId, instance } };
      }
      const sorted = tenants.length === 0 ? [TENANT, 'beta', 'gamma'] : [TENANT, 'gamma'];
      expect(seen).toEqual(sorted.flatMap((tenant) => runIds(FEW).map((id) => `${tenant}/${id}`)));
    }
  });

  it('are queried about as fast among thousands of agents as among few (RT-2, SB-8, BD-3)', async () => {
    const few = await timesOf(queries);
    const more = runIds(FEW + MANY).slice(FEW);
    await insertAll(store, [
      ...more.map((run_id) => inactiveAgentRow({ run_id })),
      ...more.map((run_id) =>
        inactiveAgentRow({ run_id, instance: 'suspended-1', state: 'SUSPENDED' }),
      ),
    ]);
    await analyze(store);
    const many = await timesOf(queries);
    const ratios = Object.keys(queries).map((query) => (many[query] ?? 0) / (few[query] ?? 0));
    const figures = Object.keys(queries).map(
      (query) => `${query}: ${few[query]?.toFixed(2)} ms, ${many[query]?.toFixed(2)} ms`,
    );
    expect(Math.max(...ratios), figures.join('; ')).toBeLessThan(8);
  });
});

/** Updates the table statistics, as autovacuum does within a minute after this many inserts. */
async function analyze(store: WorkerStore): Promise<void> {
  if (store.dialect !== 'postgres') return;
  await store.transaction((trx) => sql`analyze agents`.execute(trx));
}

/**
 * Returns the shortest duration of each query, in milliseconds, because other load on the machine can only make a query
 * slower.
 */
async function timesOf(queries: Record<string, () => Promise<unknown>>) {
  const times: Record<string, number> = {};
  for (const [name, query] of Object.entries(queries)) {
    let shortest = Number.POSITIVE_INFINITY;
    for (let round = 0; round < 25; round += 1) {
      const before = performance.now();
      await query();
      shortest = Math.min(shortest, performance.now() - before);
    }
    times[name] = shortest;
  }
  return times;
}

/** Model of a lead that asks a human through `helper`, which is suspended until the human answers. */
const ASKS: FakeModel = (_, { messages }) => {
  const last = messages.at(-1)?.parts[0]?.kind;
  if (last?.case === 'toolResult') return `Result: ${last.value.content}`;
  return { toolUses: [{ tool: 'handoff_helper', args: { task: 'Help.' } }] };
};

const HELPER = `${RUN}/helper-1`;

/** Starts a world with a long interval between rounds, so that no round causes the observed changes. */
async function ready(): Promise<World> {
  const world = await World.start({ model: ASKS });
  await world.startWorker({ slotRenewMs: 3_600_000 });
  world.supervisor.rule = approveAll;
  world.withChildren({ helper: { kind: AgentKind.USER_PROXY, tools: [] } });
  return world;
}

async function deliverAsking(world: World): Promise<void> {
  const subAgents = [{ name: 'helper', askTimeout: durationFromMs(600_000) }];
  await world.deliver({ manifest: { ...LEAD, subAgents } });
}

async function startAsking(): Promise<{ world: World; question: string }> {
  const world = await ready();
  await deliverAsking(world);
  const { waitingFor } = await world.until('WAITING_FOR_INPUT', RUN, 'helper');
  await vi.waitFor(() => expect(world.slots.renewals).toContain(`${HELPER} SUSPEND 1`));
  return { world, question: waitingFor[0] ?? '' };
}

async function answer(world: World, name: string): Promise<void> {
  const signal = { tenant: TENANT, runId: RUN, agentInstance: 'helper-1', name };
  await world.worker.signal({ ...signal, requestId: 's-1', payloadJson: '{"text":"Blue."}' });
}

describe('preempted agents', () => {
  it('are polled in pages, one per round, in turn (SB-8)', async () => {
    const world = await World.start();
    const { store } = await world.startWorker();
    const ids = runIds(600);
    for (const runId of ids) world.slots.set(runId, 'PAUSED');
    const rows = await Promise.all(
      ids.map(async (run_id) => {
        const { spawnBudgetToken } = await world.credentials(run_id);
        const tokens = { spawnBudget: spawnBudgetToken };
        const expiresAt = Date.now() + 600_000;
        return inactiveAgentRow({ run_id, credentials: JSON.stringify({ ...tokens, expiresAt }) });
      }),
    );
    await insertAll(store, rows);
    await vi.waitFor(() => expect(new Set(world.slots.renewals).size).toBe(ids.length));
    expect(Math.max(...world.slots.batches)).toBeLessThanOrEqual(256);
    world.slots.set(ids[599] ?? '', 'ACTIVE');
    await vi.waitFor(async () => {
      const left = await preemptedAgents(store.db, { tenants: [], after: undefined, limit: 700 });
      expect(left).toHaveLength(599);
    });
  });

  it('are made runnable a few at a time when their tokens have expired (SB-8)', async () => {
    const world = await World.start({ inFile: true });
    // The rows are inserted before the worker starts, because it has only one round in this test.
    const before = await openWorkerStore(world.config().store);
    await insertAll(
      before,
      runIds(40).map((run_id) => inactiveAgentRow({ run_id })),
    );
    await before.close();
    const { store } = await world.startWorker({
      slotRenewMs: 3_600_000,
      maxConcurrentAgents: 1,
    });
    const page = { tenants: [], after: undefined, limit: 100 };
    await vi.waitFor(async () => expect(await preemptedAgents(store.db, page)).toHaveLength(24));
  });
});

describe('an agent that loses its slot while it is suspended', () => {
  it('pauses the timeout of its parent, and replies when it has a slot again (SB-4, AG-4)', async () => {
    const { world, question } = await startAsking();
    const { store } = world.lastWorker;
    const timer = () => store.db.selectFrom('timers').selectAll().executeTakeFirst();
    // The parent is suspended in a separate commit, after its child has asked the question.
    await vi.waitFor(async () => {
      expect(await timer()).toMatchObject({ remaining_ms: null, waits_with: 'helper-1' });
    });
    world.slots.set(HELPER, 'PAUSED', { hint: true });
    await world.until('PARKED', RUN, 'helper');
    const stopped = await timer();
    expect(stopped?.due_at).toBeNull();
    expect(stopped?.remaining_ms).toBeGreaterThan(0n);
    await answer(world, question);
    expect((await world.describe(RUN, 'helper')).state).toBe(AgentState.PARKED);
    expect(await timer()).toEqual(stopped);
    world.slots.set(HELPER, 'ACTIVE', { hint: true });
    await world.until('COMPLETED');
    expect(world.supervisor.endings.get(RUN)?.answer).toBe('Result: Blue.');
    expect(await timer()).toBeUndefined();
  });

  it('is suspended again when it regains its slot, and the timer of its parent resumes (SB-4)', async () => {
    const { world, question } = await startAsking();
    const { store } = world.lastWorker;
    const timer = () => store.db.selectFrom('timers').selectAll().executeTakeFirst();
    world.slots.set(HELPER, 'PAUSED', { hint: true });
    await world.until('PARKED', RUN, 'helper');
    const left = (await timer())?.remaining_ms ?? 0n;
    const before = Date.now();
    world.slots.set(HELPER, 'ACTIVE', { hint: true });
    const { waitingFor } = await world.until('WAITING_FOR_INPUT', RUN, 'helper');
    expect(waitingFor).toEqual([question]);
    const dueAt = (await timer())?.due_at?.getTime() ?? 0;
    expect(dueAt).toBeGreaterThanOrEqual(before + Number(left));
    await answer(world, question);
    await world.until('COMPLETED');
  });

  it('is parked when it is preempted during its suspension (SB-4, SB-8)', async () => {
    const world = await ready();
    const { reached, release } = world.faults.holdAt('before renew SUSPEND');
    await deliverAsking(world);
    await reached;
    await world.until('WAITING_FOR_INPUT', RUN, 'helper');
    world.slots.set(HELPER, 'PAUSED');
    release();
    const { waitingFor } = await world.until('PARKED', RUN, 'helper');
    expect(waitingFor).toEqual(['slot']);
  });
});
