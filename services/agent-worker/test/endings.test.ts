import { durationFromMs } from '@bufbuild/protobuf/wkt';
import { CallStatus } from '@writ/contracts/writ/identity/v1/claims_pb';
import { RefusalHandling } from '@writ/contracts/writ/supervision/v1/manifest_pb';
import { ResultKind } from '@writ/contracts/writ/tool/v1/tool_pb';
import { DeadlineError, OverloadedError } from '@writ/kernel';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { RUN } from './delivery.ts';
import { modelTimeout, promptOf } from './fake-meter.ts';
import { ScriptedModel } from './scripted-model.ts';
import { World } from './world.ts';

const LOOK_UP = '{"kind":"tool","name":"get_refund_context","args":{"user_id":42}}';

let scripts: ScriptedModel;

beforeAll(async () => {
  scripts = await ScriptedModel.start();
});

afterAll(() => scripts[Symbol.asyncDispose]());

/** The report of how the agent ended. */
function reportOf(world: World) {
  const [report, ...more] = world.supervisor.reports;
  expect(more).toEqual([]);
  return report;
}

describe('an agent that stops', () => {
  it('reports the phase supervisor for a block by policy (AG-7, AG-10, SV-7)', async () => {
    const world = await World.start({ model: scripts.model('early-final') });
    await world.startWorker();
    await world.deliver();
    const { stopReason } = await world.until('BLOCKED');
    expect(stopReason).toBe('supervisor_block:final_requires_context');
    expect(reportOf(world)).toMatchObject({ stopReason, phase: 'supervisor', callId: 'op-2' });
  });

  it('reports the phase worker for an invalid action, with the model’s raw text (SV-2, SV-7)', async () => {
    const world = await World.start({ model: scripts.model('bad-json') });
    await world.startWorker();
    await world.deliver();
    const { stopReason } = await world.until('ERROR');
    expect(stopReason).toBe('invalid_action:non_json');
    expect(reportOf(world)).toMatchObject({ phase: 'worker', callId: 'op-2' });
    expect(world.supervisor.requests[0]?.proposal.value).toMatch(/^Let me first/);
  });

  it('reports the phase human_approval for a rejection (SV-5, SV-7)', async () => {
    const world = await World.start({ model: scripts.model('escalate-1200') });
    const worker = await world.startWorker();
    await world.deliver();
    await world.until('SUSPENDED');
    await world.approve('op-4', 'reject');
    const { stopReason } = await world.until('BLOCKED');
    expect(stopReason).toBe('human_rejected');
    expect(reportOf(world)).toMatchObject({ phase: 'human_approval', callId: 'op-4' });
    await worker.stop();
    expect(world.steps().at(-1)).toBe('STEP_END 2 human_rejected');
  });

  it('reports a refusal by the gateway, with the receipt (TG-2, SV-7)', async () => {
    const world = await World.start({ model: () => LOOK_UP });
    world.gateway.answer = () => ({
      status: CallStatus.REFUSED,
      stopReason: 'loop_detected:signature_repeat',
      message: 'The same call was made before.',
      receipt: 'receipt-of-refusal',
    });
    await world.startWorker();
    await world.deliver();
    await world.until('BLOCKED');
    expect(reportOf(world)).toMatchObject({
      stopReason: 'loop_detected:signature_repeat',
      phase: 'execution',
      callId: 'op-2',
      receipts: ['receipt-of-refusal'],
    });
  });

  it('reports a model call that failed in a step or while the final answer was composed (EM-8, SV-7)', async () => {
    for (const [callId, phase] of [
      ['op-1', 'worker'],
      ['op-3', 'finalize'],
    ] as const) {
      const world = await World.start({ model: () => LOOK_UP });
      world.faults.failAt(`before generate ${callId}`, modelTimeout());
      await world.startWorker();
      await world.deliver({ manifest: { limits: { maxSteps: 1 } } });
      const { stopReason } = await world.until('ERROR');
      expect(stopReason).toBe('llm_timeout');
      expect(reportOf(world)).toMatchObject({ phase, callId });
    }
  });

  it('names the dimension of the exhausted budget (EM-2, AG-7)', async () => {
    const world = await World.start();
    const exhausted = new OverloadedError('BUDGET_EXHAUSTED', 'Token budget exceeded: 9 > 8', {
      dimension: 'tokens',
    });
    world.faults.failAt('before generate op-1', exhausted);
    await world.startWorker();
    await world.deliver();
    const { stopReason } = await world.until('BUDGET_EXCEEDED');
    expect(stopReason).toBe('budget_exhausted:tokens');
  });

  it('ends with the stop reason of the supervisor, not the reported one (AG-7, RT-4)', async () => {
    const world = await World.start({ model: () => 'no action' });
    world.supervisor.endings.set(RUN, { stopReason: 'cancelled', answer: '' });
    await world.startWorker();
    await world.deliver();
    const { stopReason } = await world.until('CANCELLED');
    expect(stopReason).toBe('cancelled');
  });

  it('stops at the run’s deadline during a model call (SUP-5, SUP-8)', async () => {
    const world = await World.start();
    world.meter.model = async () => {
      await world.faults.untilReleased();
      return '';
    };
    await world.startWorker();
    await world.deliver({ deadline: new Date(Date.now() + 150) });
    const { stopReason } = await world.until('TIMED_OUT');
    expect(stopReason).toBe('deadline');
  });

  it('propagates the timeout of a model call (SUP-5)', async () => {
    const world = await World.start({ model: () => 'no action' });
    await world.startWorker();
    const timeout = durationFromMs(300);
    await world.deliver({ manifest: { model: { model: 'small', jsonMode: true, timeout } } });
    await world.until('ERROR');
    expect(world.meter.requests[0]).toMatchObject({
      timeout: { nanos: 300_000_000 },
      temperature: 0,
      step: 1,
    });
  });
});

describe('a call with an indeterminate outcome', () => {
  const unknown = {
    status: CallStatus.UNKNOWN,
    stopReason: 'outcome_unknown:issue_refund',
    message: 'The gateway crashed during the call.',
    receipt: 'receipt-op-4',
  };

  async function startUnknown(): Promise<World> {
    const world = await World.start({ model: scripts.model('auto-1000') });
    world.gateway.answer = (tool) => (tool === 'issue_refund' ? unknown : undefined);
    await world.startWorker();
    await world.deliver();
    const { waitingFor } = await world.until('SUSPENDED');
    expect(waitingFor).toEqual(['approval:op-4']);
    return world;
  }

  it('waits for a human to resolve it, and continues with the resolution (TG-5)', async () => {
    const world = await startUnknown();
    const content = JSON.stringify({ status: 'ok', refund: { amount_usd: 1000 } });
    const result = { kind: ResultKind.JSON, content };
    const resolved = { status: CallStatus.OK, result, receipt: 'receipt-op-4-resolved' };
    world.gateway.resolve(RUN, 'op-4', resolved);
    await world.wake('resolved-op-4', world.supervisor.currentDecision(RUN, 'op-4'));
    await world.until('COMPLETED');
    expect(world.gateway.executed.filter((line) => line.startsWith('op-4'))).toHaveLength(1);
    expect(world.supervisor.receipts.slice(1, 3)).toEqual([
      'receipt-op-4',
      'receipt-op-4-resolved',
    ]);
  });

  it('stops the run when it is not resolved in time (TG-5, SV-7)', async () => {
    const world = await startUnknown();
    const decision = world.supervisor.currentDecision(RUN, 'op-4');
    decision.stopReason = 'outcome_unknown:issue_refund';
    await world.wake('expired-op-4', decision);
    const { stopReason } = await world.until('ERROR');
    expect(stopReason).toBe('outcome_unknown:issue_refund');
    expect(reportOf(world)).toMatchObject({ phase: 'execution', callId: 'op-4' });
  });
});

describe('an agent with on_refusal tell_model', () => {
  const manifest = {
    onRefusal: RefusalHandling.TELL_MODEL,
    limits: { maxSteps: 8, maxRefusals: 2 },
  };

  it('continues after a refusal (AG-10)', async () => {
    const answers = [
      '{"kind":"final","answer":"Done."}',
      LOOK_UP,
      '{"kind":"final","answer":"Now."}',
    ];
    const world = await World.start({
      model: ({ state_summary }) => {
        const done = Number((state_summary as { steps_completed: number }).steps_completed);
        return answers[done] ?? '';
      },
    });
    await world.startWorker();
    await world.deliver({ manifest });
    await world.until('COMPLETED');
    const second = promptOf(world.meter.requests[1] ?? expect.fail());
    expect(second).toMatchObject({
      state_summary: {
        last_step: {
          executed_action: null,
          observation: {
            status: 'refused',
            error: 'supervisor_block:final_requires_context',
          },
        },
      },
    });
  });

  it('stops at the limit of refusals (AG-10)', async () => {
    const world = await World.start({ model: () => '{"kind":"final","answer":"Done."}' });
    await world.startWorker();
    await world.deliver({ manifest });
    await world.until('BLOCKED');
    expect(world.supervisor.decided).toHaveLength(3);
  });

  it('stops at once when the run has no time or budget left (AG-10)', async () => {
    const world = await World.start({ model: () => LOOK_UP });
    const late = new DeadlineError('DEADLINE_EXCEEDED', 'Out of time.', {
      stop_reason: 'max_seconds',
    });
    world.faults.failAt('before review op-2', late);
    await world.startWorker();
    await world.deliver({ manifest });
    const { stopReason } = await world.until('TIMED_OUT');
    expect(stopReason).toBe('max_seconds');
    expect(world.supervisor.decided).toEqual([]);
  });
});
