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
import { type Stage, supervisorClient } from '../e2e/scripted/worker-clients.ts';

/** A platform that is up, with everybody who calls it. */
export interface OrderStage {
  readonly client: WritClient;
  readonly worker: ScriptedWorker;
  readonly slots: ClosableRpcClient<typeof SpawnBudgetService>;
  readonly tabs: ClosableRpcClient<typeof ExecutionMeterService>;
  close(): void;
}

/** Opens a stage. */
export async function openStage(
  up: Stage & { readonly edgeUrl: string; readonly apiKey: string },
): Promise<OrderStage> {
  const worker = await ScriptedWorker.start(up);
  const slots = await supervisorClient(up, SpawnBudgetService, 'spawn-budget');
  const tabs = await supervisorClient(up, ExecutionMeterService, 'execution-meter');
  return {
    client: createWritClient({ baseUrl: up.edgeUrl, apiKey: up.apiKey }),
    worker,
    slots,
    tabs,
    close: () => {
      for (const each of [worker, slots, tabs]) each.close();
    },
  };
}

/** What is under way, or late: asked again, the answer is of the same order. */
const PENDING: readonly string[] = ['SPAWN_PENDING', 'END_PENDING', 'DEADLINE_EXCEEDED'];

type Step = (run: OrderRun, stage: OrderStage) => Promise<unknown>;

/** Each makes the supervisor place an order and waits for it; made again after a kill, it changes nothing. */
const STEPS: readonly Step[] = [
  async (run, stage) => await run.root(stage),
  async (run, stage) => {
    const { child } = await (await run.root(stage)).spawn('op-1', 'scout');
    run.child = child?.instance ?? '';
    await stage.worker.take(run.runId, run.child);
  },
  async (run, stage) => {
    const root = await run.root(stage);
    await root.endChild(run.child, 'end-1');
    await assertGivenBack(stage, root, run.child);
  },
  async (run, stage) => {
    const { approvalId = '' } = (await (await run.root(stage)).propose('op-2', 7)) ?? {};
    const answer = { case: 'approve', value: {} } as const;
    await stage.client.approvals.decideApproval({
      requestId: `yes-${run.name}`,
      approvalId,
      answer,
    });
    await until(`${run.name} to be woken`, () => stage.worker.isSignalled(run.runId) || undefined);
  },
  async (run, stage) => await (await run.root(stage)).final('op-3'),
  async (run, stage) => {
    await until(`the end of ${run.name}`, async () => {
      const { run: now } = await stage.client.runs.getRun({ runId: run.runId });
      return now?.state === RunState.COMPLETED || undefined;
    });
  },
];

/** What a child had is free again as soon as its ending is answered, not with the end of its run. */
async function assertGivenBack(
  { slots, tabs }: OrderStage,
  { runId, instance }: ScriptedAgent,
  child: string,
): Promise<void> {
  const { pool } = await slots.getPool({ tenant: 'default', runId });
  const holders = pool?.holders.map(({ agent }) => agent?.instance);
  assert.deepEqual(holders, [instance]);
  const { tab } = await tabs.getTab({ tab: { tenant: 'default', runId, agentInstance: child } });
  assert.equal(tab?.state, TabState.CLOSED);
}

/** A run that makes a child, ends it, asks a person, and ends: every order of a run is in it. */
export class OrderRun {
  readonly name: string;
  runId = '';
  child = '';
  #root: { readonly stage: OrderStage; readonly agent: ScriptedAgent } | undefined;
  #next = 0;

  constructor(name: string) {
    this.name = name;
  }

  /** Starts it, once. */
  async begin({ client }: OrderStage): Promise<void> {
    const request = { requestId: `start-${this.name}`, agent: 'lead', goal: this.name };
    const { run } = await client.runs.startRun(request);
    assert.ok(run);
    this.runId = run.runId;
  }

  /** Takes every step that was not taken. */
  async drive(stage: OrderStage): Promise<void> {
    if (this.runId === '') await this.begin(stage);
    for (const step of STEPS.slice(this.#next)) {
      await this.#take(step, stage);
      this.#next += 1;
    }
  }

  /** As a worker does: what is still under way is asked for again. */
  async #take(step: Step, stage: OrderStage): Promise<void> {
    for (;;) {
      try {
        await step(this, stage);
        return;
      } catch (error) {
        if (!isWritError(error) || !PENDING.includes(error.reason)) throw error;
      }
    }
  }

  /** Ends it in the middle of whatever it is at. */
  async cancel({ client }: OrderStage): Promise<void> {
    const { runId } = this;
    await client.runs.cancelRun({ requestId: `cancel-${this.name}`, runId });
    await until(`the end of ${this.name}`, async () => {
      const { run } = await client.runs.getRun({ runId });
      return run?.state === RunState.CANCELLED || undefined;
    });
  }

  /** Its root, with a slot grant of this stage. */
  async root(stage: OrderStage): Promise<ScriptedAgent> {
    if (this.#root?.stage !== stage) {
      this.#root = { stage, agent: await stage.worker.take(this.runId) };
    }
    await this.#root.agent.renew();
    return this.#root.agent;
  }
}
