import assert from 'node:assert/strict';
import { createWritClient, type WritClient } from '@writ/client';
import { ExecutionMeterService } from '@writ/contracts/writ/meter/v1/execution_meter_service_pb';
import { TabState } from '@writ/contracts/writ/meter/v1/tab_pb';
import { RunState } from '@writ/contracts/writ/run/v1/run_pb';
import { SpawnBudgetService } from '@writ/contracts/writ/spawn/v1/spawn_budget_service_pb';
import { isWritError } from '@writ/kernel';
import type { ClosableRpcClient } from '@writ/rpc';
import type { ScriptedAgent } from '../e2e/scripted/scripted-agent.ts';
import { ScriptedWorker } from '../e2e/scripted/scripted-worker.ts';
import { until } from '../e2e/scripted/until.ts';
import { type RunningPlatform, supervisorClient } from '../e2e/scripted/worker-clients.ts';

/** A running platform with its clients and a scripted worker. */
export interface OrderHarness {
  readonly client: WritClient;
  readonly worker: ScriptedWorker;
  readonly slots: ClosableRpcClient<typeof SpawnBudgetService>;
  readonly tabs: ClosableRpcClient<typeof ExecutionMeterService>;
  close(): void;
}

/** Connects to a running platform. */
export async function openHarness(
  platform: RunningPlatform & { readonly edgeUrl: string; readonly apiKey: string },
): Promise<OrderHarness> {
  const worker = await ScriptedWorker.start(platform);
  const slots = await supervisorClient(platform, SpawnBudgetService, 'spawn-budget');
  const tabs = await supervisorClient(platform, ExecutionMeterService, 'execution-meter');
  return {
    client: createWritClient({ baseUrl: platform.edgeUrl, apiKey: platform.apiKey }),
    worker,
    slots,
    tabs,
    close: () => {
      for (const each of [worker, slots, tabs]) each.close();
    },
  };
}

/**
 * Errors of a pending or late order, or of a grant that expired while a call was retried; a retry renews the slot, as a
 * worker does, and returns the result of the same order.
 */
const PENDING: readonly string[] = [
  'SPAWN_PENDING',
  'END_PENDING',
  'DEADLINE_EXCEEDED',
  'SLOT_GRANT_EXPIRED',
];

type Step = (run: OrderRun, harness: OrderHarness) => Promise<unknown>;

/**
 * Each step makes the supervisor place an order and waits for it; a step that is repeated after a kill is
 * idempotent.
 */
const STEPS: readonly Step[] = [
  async (run, harness) => await run.root(harness),
  async (run, harness) => {
    const { child } = await (await run.root(harness)).spawn('op-1', 'scout');
    run.child = child?.instance ?? '';
    await harness.worker.take(run.runId, run.child);
  },
  async (run, harness) => {
    const root = await run.root(harness);
    await root.endChild(run.child, 'end-1');
    await assertReleased(harness, root, run.child);
  },
  async (run, harness) => {
    const { approvalId = '' } = (await (await run.root(harness)).propose('op-2', 7)) ?? {};
    const answer = { case: 'approve', value: {} } as const;
    await harness.client.approvals.decideApproval({
      requestId: `yes-${run.name}`,
      approvalId,
      answer,
    });
    await until(
      `${run.name} to be woken`,
      () => harness.worker.isSignalled(run.runId) || undefined,
    );
  },
  async (run, harness) => await (await run.root(harness)).final('op-3'),
  async (run, harness) => {
    await until(`the end of ${run.name}`, async () => {
      const { run: now } = await harness.client.runs.getRun({ runId: run.runId });
      return now?.state === RunState.COMPLETED || undefined;
    });
  },
];

/** Checks that the slot and the tab of a child are released when EndChild answers, before the run ends. */
async function assertReleased(
  { slots, tabs }: OrderHarness,
  { runId, instance }: ScriptedAgent,
  child: string,
): Promise<void> {
  const { pool } = await slots.getPool({ tenant: 'default', runId });
  const holders = pool?.holders.map(({ agent }) => agent?.instance);
  assert.deepEqual(holders, [instance]);
  const { tab } = await tabs.getTab({ tab: { tenant: 'default', runId, agentInstance: child } });
  assert.equal(tab?.state, TabState.CLOSED);
}

/** A run that spawns and ends a child, escalates a call and completes: it places every kind of order. */
export class OrderRun {
  readonly name: string;
  runId = '';
  child = '';
  #root: { readonly harness: OrderHarness; readonly agent: ScriptedAgent } | undefined;
  #next = 0;

  constructor(name: string) {
    this.name = name;
  }

  /** Starts the run. */
  async begin({ client }: OrderHarness): Promise<void> {
    const request = { requestId: `start-${this.name}`, agent: 'lead', goal: this.name };
    const { run } = await client.runs.startRun(request);
    assert.ok(run);
    this.runId = run.runId;
  }

  /** Executes the remaining steps until `isHeld` returns true. */
  async drive(harness: OrderHarness, isHeld = () => false): Promise<void> {
    if (this.runId === '') await this.begin(harness);
    for (const step of STEPS.slice(this.#next)) {
      if (isHeld()) return;
      await this.#take(step, harness);
      this.#next += 1;
    }
  }

  /** Retries a step while its order is pending, as a worker does. */
  async #take(step: Step, harness: OrderHarness): Promise<void> {
    for (;;) {
      try {
        await step(this, harness);
        return;
      } catch (error) {
        if (!isWritError(error) || !PENDING.includes(error.reason)) throw error;
      }
    }
  }

  /** Cancels the run and waits for its end. */
  async cancel({ client }: OrderHarness): Promise<void> {
    const { runId } = this;
    await client.runs.cancelRun({ requestId: `cancel-${this.name}`, runId });
    await until(`the end of ${this.name}`, async () => {
      const { run } = await client.runs.getRun({ runId });
      return run?.state === RunState.CANCELLED || undefined;
    });
  }

  /** The root agent with a current slot grant. */
  async root(harness: OrderHarness): Promise<ScriptedAgent> {
    if (this.#root?.harness !== harness) {
      this.#root = { harness, agent: await harness.worker.take(this.runId) };
    }
    await this.#root.agent.renew();
    return this.#root.agent;
  }
}
