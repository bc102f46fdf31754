import { AgentState } from '@writ/contracts/writ/worker/v1/agent_worker_service_pb';
import { ManualClock } from '@writ/kernel';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { RUN } from './delivery.ts';
import { promptOf } from './fake-meter.ts';
import { ScriptedModel } from './scripted-model.ts';
import { World } from './world.ts';

let scripts: ScriptedModel;

beforeAll(async () => {
  scripts = await ScriptedModel.start();
});

afterAll(() => scripts[Symbol.asyncDispose]());

describe('a refund desk', () => {
  it('looks up, refunds, confirms and answers, each under its own call_id (AG-1, AG-2, RT-1)', async () => {
    const world = await World.start({ model: scripts.model('auto-1000') });
    await world.startWorker();
    await world.deliver();
    const { epoch, journalLength } = await world.until('COMPLETED');
    expect(world.supervisor.endings.get(RUN)?.stopReason).toBe('success');
    expect(world.meter.paid).toEqual(['op-1', 'op-3', 'op-5', 'op-7']);
    expect(world.gateway.executed).toEqual([
      'op-2 get_refund_context',
      'op-4 issue_refund',
      'op-6 send_refund_email',
    ]);
    expect({ epoch, journalLength }).toEqual({ epoch: 1n, journalLength: 12n });
  });

  it('is suspended during an approval and executes the approved action (SV-5, SV-6, RT-2)', async () => {
    const world = await World.start({ model: scripts.model('escalate-1200') });
    await world.startWorker();
    await world.deliver();
    const { waitingFor, state } = await world.until('SUSPENDED');
    expect({ state, waitingFor }).toEqual({
      state: AgentState.SUSPENDED,
      waitingFor: ['approval:op-4'],
    });
    expect(world.gateway.executed).toEqual(['op-2 get_refund_context']);
    expect(await world.approve('op-4', { args: { amount_usd: 800 } })).toMatchObject({
      accepted: true,
    });
    const { epoch } = await world.until('COMPLETED');
    expect(epoch).toBe(2n);
    expect(world.supervisor.endings.get(RUN)?.answer).toMatch(/^800 USD/);
    expect(world.gateway.requests.map(({ argumentsJson }) => JSON.parse(argumentsJson))).toEqual([
      { user_id: 42 },
      expect.objectContaining({ amount_usd: 800 }),
      expect.objectContaining({ amount_usd: 800 }),
    ]);
    expect(world.supervisor.decided).toHaveLength(4);
    expect(world.meter.paid).toHaveLength(4);
  });

  it('attaches receipts and results to its next review, once (SV-7, TG-8)', async () => {
    const world = await World.start({ model: scripts.model('auto-1000') });
    await world.startWorker();
    await world.deliver();
    await world.until('COMPLETED');
    expect(world.supervisor.receipts).toEqual(['receipt-op-2', 'receipt-op-4', 'receipt-op-6']);
    expect(world.supervisor.observations).toEqual(['op-2', 'op-4', 'op-6']);
  });

  it('sends its token, its slot grant and the epoch of its lease with every call (SUP-5, SUP-9)', async () => {
    const world = await World.start({ model: scripts.model('auto-1000') });
    await world.startWorker();
    await world.deliver();
    await world.until('COMPLETED');
    expect(world.supervisor.epochs).toEqual([1n, 1n, 1n, 1n]);
    expect(world.supervisor.grants).toEqual(Array(4).fill('refund-desk-1'));
  });

  it('checks its tool list at most once a second, and reloads it only when the registry has changed (TG-2, BD-3)', async () => {
    const clock = new ManualClock(new Date());
    const world = await World.start({ model: scripts.model('early-final'), clock });
    await world.startWorker();
    for (const [runId, version, elapsedMs, stepMs] of [
      ['run-1', 'v1', 0, 0],
      ['run-2', 'v1', 1_000, -900],
      ['run-3', 'v2', 999, 2_000],
      ['run-4', 'v2', 1, -2_000],
    ] as const) {
      clock.advance(elapsedMs);
      clock.step(stepMs);
      world.gateway.registryVersion = version;
      await world.deliver({ runId });
      await world.until('BLOCKED', runId);
    }
    expect(world.gateway.lists).toEqual(['v1', 'unchanged', 'v2']);
    const prompts = world.meter.requests.map(promptOf);
    expect(prompts[1]).toEqual(prompts[0]);
    expect(prompts[2]).toEqual(prompts[0]);
    expect(prompts[3]).toEqual(prompts[0]);
  });

  it('emits each step once, its end before the start of the next one (HK-1, HK-2)', async () => {
    const world = await World.start({ model: scripts.model('escalate-1200') });
    const worker = await world.startWorker();
    await world.deliver();
    await world.until('SUSPENDED');
    await world.approve('op-4', { args: { amount_usd: 800 } });
    await world.until('COMPLETED');
    await worker.stop();
    expect(world.steps()).toEqual([
      'STEP_START 1',
      'STEP_END 1 approve',
      'STEP_START 2',
      'STEP_END 2 escalate',
      'STEP_START 3',
      'STEP_END 3 approve',
      'STEP_START 4',
      'STEP_END 4 approve',
    ]);
  });

  it('composes the answer when the steps are used up, and proposes it for review (AG-2, SV-1)', async () => {
    const world = await World.start({ model: scripts.model('auto-1000') });
    await world.startWorker();
    await world.deliver({ manifest: { limits: { maxSteps: 3 } } });
    await world.until('COMPLETED');
    expect(world.supervisor.endings.get(RUN)?.answer).toMatch(/^1000 USD/);
    const [last] = world.meter.requests.slice(-1);
    expect(last?.requireContent).toBe(true);
    expect(Object.keys(promptOf(last ?? expect.fail()))).toEqual(['goal', 'history']);
    expect(world.supervisor.requests.at(-1)).toMatchObject({ composed: true });
  });

  it('costs at most one commit per step (RT-1)', async () => {
    const commitsOf = async (maxSteps: number) => {
      const world = await World.start({
        model: ({ state_summary }, { callId }) => {
          if (state_summary === undefined) return 'The context was read.';
          const args = { user_id: Number(callId.slice('op-'.length)) };
          return JSON.stringify({ kind: 'tool', name: 'get_refund_context', args });
        },
      });
      const worker = await world.startWorker();
      await world.deliver({ manifest: { limits: { maxSteps } } });
      await world.until('COMPLETED');
      return worker.store.commits;
    };
    // Besides one commit per step: the delivery, the first effect and the end. A step that starts long before the next
    // required commit causes one more commit.
    expect(await commitsOf(6)).toBeLessThanOrEqual(4 + 6);
  });
});
