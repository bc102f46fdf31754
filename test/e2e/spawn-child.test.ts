import { durationFromMs } from '@bufbuild/protobuf/wkt';
import { ExecutionMeterService } from '@writ/contracts/writ/meter/v1/execution_meter_service_pb';
import { TabState } from '@writ/contracts/writ/meter/v1/tab_pb';
import { SlotState } from '@writ/contracts/writ/spawn/v1/pool_pb';
import { SpawnBudgetService } from '@writ/contracts/writ/spawn/v1/spawn_budget_service_pb';
import { Priority } from '@writ/contracts/writ/supervision/v1/supervision_pb';
import type { ClosableRpcClient } from '@writ/rpc';
import { startTestPlatform, type TestPlatform } from '@writ/testing/platform';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { FAMILY } from './scripted/family.ts';
import type { ScriptedAgent } from './scripted/scripted-agent.ts';
import { ScriptedWorker } from './scripted/scripted-worker.ts';
import { type RunningPlatform, supervisorClient } from './scripted/worker-clients.ts';

describe('a worker that spawns children through the real services', () => {
  let test: TestPlatform;
  let worker: ScriptedWorker;
  let slots: ClosableRpcClient<typeof SpawnBudgetService>;
  let tabs: ClosableRpcClient<typeof ExecutionMeterService>;
  beforeAll(async () => {
    test = await startTestPlatform({ files: FAMILY });
    const platform: RunningPlatform = { dataDir: test.dataDir, addresses: test.platform.addresses };
    worker = await ScriptedWorker.start(platform);
    slots = await supervisorClient(platform, SpawnBudgetService, 'spawn-budget');
    tabs = await supervisorClient(platform, ExecutionMeterService, 'execution-meter');
  });
  afterAll(async () => {
    for (const each of [worker, slots, tabs]) each.close();
    await test.close();
  });

  let started = 0;
  async function lead(spawnBudget = {}): Promise<ScriptedAgent> {
    started += 1;
    const request = { requestId: `start-${started}`, agent: 'lead', goal: 'Find it.', spawnBudget };
    const { run } = await test.client.runs.startRun(request);
    return await worker.take(run?.runId ?? '');
  }

  async function held({ runId }: ScriptedAgent): Promise<string[]> {
    const { pool } = await slots.getPool({ tenant: 'default', runId });
    return (pool?.holders ?? []).map(({ agent }) => agent?.instance ?? '').sort();
  }

  async function tabOf({ runId }: ScriptedAgent, agentInstance: string) {
    return (await tabs.getTab({ tab: { tenant: 'default', runId, agentInstance } })).tab;
  }

  it('receives a child with slot, tab and tokens, and the child acts with them (SUP-9, SB-2, EM-1)', async () => {
    const root = await lead();
    const answer = await root.spawn('op-1', 'scout');
    expect(answer).toMatchObject({ slotRefusal: '', supervision: { depth: 1, runId: root.runId } });
    const scout = await worker.take(root.runId, answer.child?.instance);
    expect(await held(root)).toEqual([root.instance, scout.instance].sort());
    expect(await tabOf(root, scout.instance)).toMatchObject({ state: TabState.OPEN });
    expect((await scout.generate('op-1')).length).toBeGreaterThan(0);
    expect((await scout.propose('op-2', 42))?.writ).not.toBe('');
    expect((await scout.final('op-3'))?.runEnded).toBe(true);
    const ended = await root.endChild(scout.instance, 'end-1');
    expect(ended).toMatchObject({ stopReason: 'success', resumed: [] });
    expect(await held(root)).toEqual([root.instance]);
    expect(await tabOf(root, scout.instance)).toMatchObject({ state: TabState.CLOSED });
  });

  it('ends a child, which releases its slot and closes its tab, and whose further calls are rejected (SUP-8, SB-3)', async () => {
    const root = await lead();
    const scout = await root.child('op-1');
    await scout.generate('op-1');
    expect(await root.endChild(scout.instance, 'end-1')).toMatchObject({ stopReason: 'cancelled' });
    expect(await held(root)).toEqual([root.instance]);
    const tab = await tabOf(root, scout.instance);
    expect(tab?.state).toBe(TabState.CLOSED);
    expect(tab?.levels).not.toEqual([]);
    for (const { reservedTokens, reservedCostNanoUsd, reservedTurns } of tab?.levels ?? []) {
      expect([reservedTokens, reservedCostNanoUsd, reservedTurns]).toEqual([0n, 0n, 0n]);
    }
    expect((await scout.renew())?.state).toBe(SlotState.RELEASED);
    await expect(scout.generate('op-2')).rejects.toMatchObject({ reason: 'FROZEN' });
    await expect(scout.final('op-2')).rejects.toMatchObject({ reason: 'RUN_ENDED' });
  });

  it('receives the exceeded cap and no child when no slot is free (SB-2, SB-7)', async () => {
    const root = await lead({ maxAgents: 2 });
    await root.spawn('op-1', 'scout');
    const full = await root.spawn('op-2', 'scout');
    expect(full.child).toBeUndefined();
    expect(full.slotRefusal).toContain('max_agents');
    const nested = await lead();
    const deep = await (await nested.child('op-1', 'lead')).child('op-1', 'lead');
    expect((await deep.spawn('op-1', 'scout')).slotRefusal).toContain('max_depth');
    const last = await lead({ maxTotalSpawns: 0 });
    expect((await last.spawn('op-1', 'scout')).slotRefusal).toContain('max_total_spawns');
    for (const { runId } of [root, nested, last]) {
      const { pool } = await slots.getPool({ tenant: 'default', runId });
      expect(pool?.held).toBe(worker.delivered(runId).length);
    }
  });

  it('receives a refusal that names the dimension when a budget exceeds that of the parent, and acquires no slot (SUP-9)', async () => {
    const root = await lead();
    const budgets = [
      ['max_tokens', { maxTokens: 100_001n }],
      ['max_cost_nano_usd', { maxCostNanoUsd: 1_000_000_001n }],
      ['max_turns', { maxTurns: 51n }],
      ['deadline', { deadline: durationFromMs(600_001) }],
      ['max_active', { maxActive: durationFromMs(600_001) }],
    ] as const;
    for (const [dimension, executionBudget] of budgets) {
      const spawning = root.spawn('op-1', 'scout', { executionBudget });
      await expect(spawning, dimension).rejects.toMatchObject({
        reason: 'BUDGET_ABOVE_PARENT',
        metadata: { field: `execution_budget.${dimension}` },
      });
    }
    expect(await held(root)).toEqual([root.instance]);
    expect(worker.delivered(root.runId)).toHaveLength(1);
  });

  it('can restrict priority, tools and models of a child but not extend them (SUP-9)', async () => {
    const root = await lead();
    const { supervision, child } = await root.spawn('op-1', 'scout', {
      priority: Priority.CRITICAL,
      models: ['sim-bad-json'],
      executionBudget: { maxTurns: 1n },
    });
    expect(supervision).toMatchObject({
      priority: Priority.LOW,
      executionBudget: { maxTurns: 1n, maxTokens: 100_000n, maxCostNanoUsd: 1_000_000_000n },
    });
    expect(await tabOf(root, child?.instance ?? '')).toMatchObject({ models: ['sim-bad-json'] });
    const scout = await worker.take(root.runId, child?.instance);
    await expect(scout.generate('op-1')).rejects.toMatchObject({ reason: 'MODEL_NOT_ALLOWED' });
    await expect(root.spawn('op-2', 'scout', { tools: ['issue_refund'] })).rejects.toMatchObject({
      reason: 'TOOL_NOT_ALLOWED',
    });
    await expect(root.spawn('op-2', 'scout', { models: ['gpt-9'] })).rejects.toMatchObject({
      reason: 'MODEL_NOT_ALLOWED',
    });
  });

  it('receives separate children for two spawns of one manifest, and the current state on a retry (SUP-9, SB-9)', async () => {
    const root = await lead();
    const [one, other] = [await root.child('op-1'), await root.child('op-2')];
    expect(one.instance).not.toBe(other.instance);
    await one.generate('op-1');
    await other.generate('op-1');
    const spent = async (agent: ScriptedAgent) =>
      (await tabOf(root, agent.instance))?.totals?.turns;
    expect([await spent(one), await spent(other)]).toEqual([1n, 1n]);
    const again = await root.spawn('op-1');
    expect(again.child?.instance).toBe(one.instance);
    expect(worker.delivered(root.runId)).toHaveLength(3);
    await root.endChild(one.instance, 'end-1');
    // A retry of SpawnChild for an ended child does not acquire a slot.
    expect((await root.spawn('op-1')).child?.instance).toBe(one.instance);
    expect(await held(root)).toEqual([root.instance, other.instance].sort());
    await expect(root.spawn('op-1', 'chief')).rejects.toMatchObject({ reason: 'CALL_ID_REUSED' });
  });

  it('preempts a lower-priority agent, which resumes after the preempting child ends (SB-2, SB-4)', async () => {
    const root = await lead({ maxAgents: 2 });
    const scout = await root.child('op-1', 'scout');
    const { child, paused } = await root.spawn('op-2', 'chief');
    expect(paused?.instance).toBe(scout.instance);
    // The grant of the preempted agent would be valid for seconds.
    await expect(scout.propose('op-1', 42)).rejects.toMatchObject({ reason: 'AGENT_PAUSED' });
    await expect(scout.decision('op-1')).rejects.toMatchObject({ reason: 'AGENT_PAUSED' });
    await expect(scout.spawn('op-2', 'lead')).rejects.toMatchObject({ reason: 'AGENT_PAUSED' });
    expect((await scout.renew())?.state).toBe(SlotState.PAUSED);
    const { resumed } = await root.endChild(child?.instance ?? '', 'end-1');
    expect(resumed).toMatchObject([{ instance: scout.instance }]);
    expect((await scout.renew())?.state).toBe(SlotState.ACTIVE);
    expect((await scout.propose('op-1', 42))?.stopReason).toBe('');
  });
});
