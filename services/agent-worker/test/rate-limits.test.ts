import { AgentKind } from '@writ/contracts/writ/supervision/v1/manifest_pb';
import { HistoryRetention } from '@writ/contracts/writ/supervision/v1/supervision_pb';
import { AgentState } from '@writ/contracts/writ/worker/v1/agent_worker_service_pb';
import type { JsonObject } from '@writ/kernel';
import { testStore } from '@writ/testing/postgres';
import { describe, expect, it, onTestFinished } from 'vitest';
import { acquirePermit } from '../src/store/rate-limits.ts';
import { openWorkerStore } from '../src/store/worker-store.ts';
import { type ManifestFields, RUN, TENANT } from './delivery.ts';
import type { FakeModel } from './fake-meter.ts';
import { approveAll } from './team.ts';
import { World } from './world.ts';

const HOUR = 3_600_000;
const OTHER = { name: 'other', instance: 'other-1' } as const;

function limited(options: JsonObject, more: Partial<ManifestFields> = {}) {
  const optionsJson = JSON.stringify({ calls: 1, per_ms: HOUR, ...options });
  return { kind: AgentKind.REACT, chatMiddleware: [{ name: 'rate_limit', optionsJson }], ...more };
}

async function start(model: FakeModel = () => 'Done.') {
  const world = await World.start({ model });
  world.supervisor.rule = approveAll;
  const worker = await world.startWorker();
  return { world, worker };
}

/**
 * Runs an agent with the manifest `first` to its end, and then an agent with the manifest `other`. Returns `called` if
 * both agents called the model, else `suspended`.
 */
async function second(first: Partial<ManifestFields>, other: Partial<ManifestFields>) {
  const { world } = await start();
  world.meter.models = [
    { alias: 'small', providerId: 'one' },
    { alias: 'large', providerId: 'one' },
    { alias: 'distant', providerId: 'two' },
  ];
  await world.deliver({ manifest: first });
  await world.until('COMPLETED');
  await world.deliver({ runId: 'run-2', agent: OTHER, manifest: { name: OTHER.name, ...other } });
  await expect
    .poll(async () => (await world.describe('run-2', OTHER.name)).state)
    .toSatisfy((state) => state === AgentState.COMPLETED || state === AgentState.SUSPENDED);
  return world.meter.requests.length === 2 ? 'called' : 'suspended';
}

function withModel(model: string): Partial<ManifestFields> {
  return { model: { model, jsonMode: false } };
}

describe('a rate limit', () => {
  it('applies to an agent across all its runs (AG-9)', async () => {
    const { world } = await start();
    await world.deliver({ manifest: limited({}) });
    await world.until('COMPLETED');
    await world.deliver({ runId: 'run-2', manifest: limited({}) });
    await world.until('SUSPENDED', 'run-2');
    expect(world.meter.requests).toHaveLength(1);
  });

  it('of the scope run applies to each run separately (AG-9)', async () => {
    const { world } = await start();
    for (const runId of [RUN, 'run-2']) {
      await world.deliver({ runId, manifest: limited({ scope: 'run' }) });
      await world.until('COMPLETED', runId);
    }
  });

  it('of the scope run is deleted at the end of the run, other limits are kept (AG-9, SUP-4)', async () => {
    const { world, worker } = await start((_, { messages }) => {
      const isLast = JSON.stringify(messages).includes('Answer at once.');
      return isLast ? 'Done.' : { toolUses: [{ tool: 'get_refund_context', args: {} }] };
    });
    const { chatMiddleware } = limited({ scope: 'run' });
    const both = [...chatMiddleware, ...limited({ scope: 'tenant' }).chatMiddleware];
    const kept = async (table: 'rate_limits' | 'rate_turns') => {
      const rows = await worker.store.db.selectFrom(table).select('run_id').execute();
      return rows.map(({ run_id: runId }) => runId).toSorted();
    };
    await world.deliver({ manifest: limited({}, { chatMiddleware }) });
    await world.until('SUSPENDED');
    expect(await kept('rate_limits')).toEqual([RUN]);
    // The supervisor does not cancel a run whose only agent ended with success.
    const goal = 'Answer at once.';
    await world.deliver({ runId: 'run-2', goal, manifest: limited({}, { chatMiddleware: both }) });
    await world.until('COMPLETED', 'run-2');
    expect(await kept('rate_limits')).toEqual(['', RUN]);
    expect(await kept('rate_turns')).toEqual(['', RUN]);
    const order = { tenant: TENANT, runId: RUN, stopReason: 'cancelled' };
    const retention = HistoryRetention.PERMANENT;
    await world.worker.cancel({ ...order, requestId: 'end-run', retention });
    expect(await kept('rate_limits')).toEqual(['']);
    expect(await kept('rate_turns')).toEqual(['']);
  });

  it('of the scope agent does not limit other agents (AG-9)', async () => {
    expect(await second(limited({}), limited({}))).toBe('called');
  });

  it('of the scope tenant is shared by its agents (AG-9)', async () => {
    const shared = limited({ scope: 'tenant' });
    expect(await second(shared, shared)).toBe('suspended');
  });

  it('of the scope provider is shared by the models of one provider (AG-9)', async () => {
    const shared = limited({ scope: 'provider' });
    expect(await second(shared, { ...shared, ...withModel('large') })).toBe('suspended');
  });

  it('of the scope provider does not limit models of another provider (AG-9)', async () => {
    const shared = limited({ scope: 'provider' });
    expect(await second(shared, { ...shared, ...withModel('distant') })).toBe('called');
  });

  it('counts the calls before a checkpoint (AG-9, RT-1)', async () => {
    let calls = 0;
    const { world, worker } = await start(() => {
      calls += 1;
      return { toolUses: [{ tool: 'get_refund_context', args: { user_id: calls } }] };
    });
    // A checkpoint is taken every 32 iterations.
    const manifest = limited({ calls: 40 }, { limits: { maxIterations: 100 } });
    await world.deliver({ manifest });
    await world.until('SUSPENDED');
    expect(await worker.store.db.selectFrom('snapshots').select('run_id').execute()).toHaveLength(
      1,
    );
    expect(world.meter.requests).toHaveLength(40);
  });

  it('limits tool calls separately, and suspends the agent until its permit is valid (AG-9)', async () => {
    const args = { user_id: 42 };
    const { world, worker } = await start((_, { messages }) =>
      messages.length < 8 ? { toolUses: [{ tool: 'get_refund_context', args }] } : 'Done.',
    );
    const optionsJson = JSON.stringify({ calls: 1, per_ms: 60 });
    const functionMiddleware = [{ name: 'rate_limit', optionsJson }];
    await world.deliver({ manifest: { kind: AgentKind.REACT, functionMiddleware } });
    await world.until('COMPLETED');
    const rows = await worker.store.db
      .selectFrom('journal')
      .select('value')
      .where('kind', '=', 'turn')
      .orderBy('position')
      .execute();
    const times = rows.map(({ value }) => Number(value));
    expect(times).toHaveLength(3);
    for (const [n, time] of times.slice(1).entries()) {
      expect(time - (times[n] ?? 0)).toBeGreaterThanOrEqual(60);
    }
    expect(world.gateway.executed).toHaveLength(3);
  });

  it('grants at most `calls` permits per period, even to concurrent callers (AG-9)', async () => {
    const store = await openWorkerStore(testStore({ dialect: 'sqlite', file: ':memory:' }));
    onTestFinished(() => store.close());
    const limit = { tenant: TENANT, runId: '', name: 'x', calls: 3, perMs: 1_000 };
    const take = (ms: number) =>
      store.transaction((trx) => acquirePermit(trx, limit, new Date(ms)));
    const asked = [0, 0, 10, 10, 10, 900, 1_500, 1_500, 9_000, 9_000, 9_000, 9_000];
    const turns = (await Promise.all(asked.map(take)))
      .map((at) => at.getTime())
      .toSorted((a, b) => a - b);
    for (const [n, at] of turns.slice(3).entries()) {
      expect(at - (turns[n] ?? 0)).toBeGreaterThanOrEqual(1_000);
    }
    expect(turns.slice(0, 3)).toEqual([0, 0, 10]);
    const kept = await store.db.selectFrom('rate_turns').select('turn').execute();
    expect(kept).toHaveLength(3);
    const other = await store.transaction((trx) =>
      acquirePermit(trx, { ...limit, tenant: 'other' }, new Date(9_000)),
    );
    expect(other.getTime()).toBe(9_000);
  });
});
