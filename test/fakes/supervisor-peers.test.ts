import { FreezeCause } from '@writ/contracts/writ/control/v1/freeze_pb';
import { ExecutionMeterService } from '@writ/contracts/writ/meter/v1/execution_meter_service_pb';
import { TabState } from '@writ/contracts/writ/meter/v1/tab_pb';
import { SpawnBudgetService } from '@writ/contracts/writ/spawn/v1/spawn_budget_service_pb';
import { Priority } from '@writ/contracts/writ/supervision/v1/supervision_pb';
import { ToolGatewayService } from '@writ/contracts/writ/tool/v1/tool_gateway_service_pb';
import type { RpcClient } from '@writ/rpc';
import { startKeyPeer } from '@writ/testing';
import { describe, expect, it, onTestFinished } from 'vitest';
import { MeterWorld } from '../../services/execution-meter/test/meter-fixture.ts';
import { World } from '../../services/spawn-budget/test/world.ts';
import { FakePeers } from '../../services/supervisor/test/fake-peers.ts';
import { startFixture } from '../../services/tool-gateway/test/gateway-fixture.ts';

type Pools = RpcClient<typeof SpawnBudgetService>;
type Tabs = RpcClient<typeof ExecutionMeterService>;
/** The calls that meter and gateway have in common. */
type Freezes =
  | Pick<Tabs, 'freeze' | 'unfreeze'>
  | Pick<RpcClient<typeof ToolGatewayService>, 'freeze' | 'unfreeze'>;

const RUN = { tenant: 'acme', runId: 'run-1' };
const ROOT = { name: 'lead', instance: 'root' };
const TAB = { ...RUN, agentInstance: ROOT.instance };

/** Starts the fake peers of a supervisor; returns clients that call them as the supervisor. */
async function fakePeers() {
  const fakes = await FakePeers.start();
  const supervisor = await startKeyPeer('supervisor');
  onTestFinished(async () => {
    await supervisor.close();
    await fakes.close();
  });
  const to = <A extends 'spawn-budget' | 'execution-meter' | 'tool-gateway'>(audience: A) => ({
    audience,
    address: fakes.addressOf(audience),
  });
  return {
    pools: supervisor.client(SpawnBudgetService, to('spawn-budget')),
    tabs: supervisor.client(ExecutionMeterService, to('execution-meter')),
    tools: supervisor.client(ToolGatewayService, to('tool-gateway')),
  };
}

async function realPools(): Promise<Pools> {
  const world = await World.start();
  onTestFinished(() => world.stop());
  return world.supervisor;
}

async function realTabs(): Promise<Tabs> {
  const world = await MeterWorld.start();
  onTestFinished(() => world[Symbol.asyncDispose]());
  return world.tab;
}

async function realTools(): Promise<Freezes> {
  const fixture = await startFixture();
  onTestFinished(() => fixture[Symbol.asyncDispose]());
  return fixture.asSupervisor;
}

const openPool = (pools: Pools) =>
  pools.openPool({
    ...RUN,
    requestId: 'open',
    sessionId: 'session-1',
    root: ROOT,
    priority: Priority.NORMAL,
    budget: {},
  });

const openTab = (tabs: Tabs) =>
  tabs.openTab({
    ...RUN,
    requestId: 'open',
    sessionId: 'session-1',
    agent: ROOT,
    budget: {},
    models: ['hello'],
    priority: Priority.NORMAL,
  });

describe.each([
  ['spawn-budget', realPools],
  ["the supervisor's fake of spawn-budget", async () => (await fakePeers()).pools],
])('the pools of %s', (_, start) => {
  it('gives the root of a new pool a slot with a grant, and returns the slot again on a repeat (SB-1)', async () => {
    const pools = await start();
    const { slot } = await openPool(pools);
    expect(slot?.agent).toMatchObject(ROOT);
    expect(slot?.grant).not.toBe('');
    expect((await openPool(pools)).slot?.agent).toMatchObject(ROOT);
    expect((await pools.getPool(RUN)).pool).toMatchObject({ ...RUN, closed: false });
  });

  it('gives a child a slot with a grant, and releases it (SB-1)', async () => {
    const pools = await start();
    await openPool(pools);
    const agent = { name: 'child', instance: 'child-1' };
    const { slot } = await pools.acquire({
      ...RUN,
      requestId: 'acquire',
      agent,
      parent: ROOT,
      depth: 1,
      priority: Priority.NORMAL,
    });
    expect(slot?.agent).toMatchObject(agent);
    expect(slot?.grant).not.toBe('');
    const release = { ...RUN, requestId: 'release', agentInstance: agent.instance };
    expect(await pools.release(release)).toMatchObject({ released: true });
  });

  it('closes a pool, also on a repeat (SB-1)', async () => {
    const pools = await start();
    await openPool(pools);
    for (let time = 0; time < 2; time += 1) {
      const { pool } = await pools.closePool({ ...RUN, requestId: 'close' });
      expect(pool).toMatchObject({ runId: RUN.runId, closed: true });
    }
  });

  it('rejects a pool that was neither opened nor closed (SB-1)', async () => {
    const pools = await start();
    await expect(pools.getPool(RUN)).rejects.toMatchObject({ kind: 'not_found' });
  });

  it('closes a pool before it is opened, and then rejects opening it (SB-1)', async () => {
    const pools = await start();
    const { pool } = await pools.closePool({ ...RUN, requestId: 'close' });
    expect(pool).toMatchObject({ runId: RUN.runId, closed: true });
    expect((await pools.getPool(RUN)).pool).toMatchObject({ closed: true });
    await expect(openPool(pools)).rejects.toMatchObject({
      kind: 'failed_precondition',
      reason: 'POOL_CLOSED',
    });
  });
});

describe.each([
  ['the meter', realTabs],
  ["the supervisor's fake meter", async () => (await fakePeers()).tabs],
])('the tabs of %s', (_, start) => {
  it('opens a tab, also on a repeat (EM-1)', async () => {
    const tabs = await start();
    for (let time = 0; time < 2; time += 1) {
      expect((await openTab(tabs)).tab).toMatchObject({ runId: RUN.runId });
    }
  });

  it('closes a tab with the totals of the agent and of the run, also on a repeat (EM-8)', async () => {
    const tabs = await start();
    await openTab(tabs);
    for (let time = 0; time < 2; time += 1) {
      const { tab } = await tabs.closeTab({ tab: TAB, requestId: 'close' });
      expect(tab?.state).toBe(TabState.CLOSED);
      expect(tab?.totals?.usage).toBeDefined();
      expect(tab?.runTotals?.usage).toBeDefined();
    }
  });

  it('rejects a tab that was not opened (EM-1)', async () => {
    const tabs = await start();
    const close = tabs.closeTab({ tab: TAB, requestId: 'close' });
    await expect(close).rejects.toMatchObject({ kind: 'not_found' });
  });
});

describe.each([
  ['the meter', realTabs],
  ["the supervisor's fake meter", async () => (await fakePeers()).tabs],
  ['the gateway', realTools],
  ["the supervisor's fake gateway", async () => (await fakePeers()).tools],
])('Freeze of %s', (_, start: () => Promise<Freezes>) => {
  it('freezes a run without calls in flight, also on a repeat, and lifts the order (SV-9)', async () => {
    const { freeze, unfreeze } = await start();
    const order = {
      orderId: 'order-1',
      scope: { kind: { case: 'run', value: RUN } },
      cause: FreezeCause.HALT,
      reason: 'Stop.',
    } as const;
    for (let time = 0; time < 2; time += 1) {
      expect((await freeze({ order })).inFlight).toEqual([]);
    }
    expect(await unfreeze({ orderId: 'order-1' })).toMatchObject({ lifted: true });
  });
});
