import { CallStatus } from '@writ/contracts/writ/identity/v1/claims_pb';
import { RunState } from '@writ/contracts/writ/run/v1/run_pb';
import {
  ToolGatewayService,
  VoidState,
} from '@writ/contracts/writ/tool/v1/tool_gateway_service_pb';
import { AgentWorkerService } from '@writ/contracts/writ/worker/v1/agent_worker_service_pb';
import { ManualClock, UnavailableError } from '@writ/kernel';
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { LOOK_UP, RefundHarness, refund } from './refund-harness.ts';

const { signal } = AgentWorkerService.method;
const { freeze, voidWrit } = ToolGatewayService.method;
/** Far more than the longest back-off of an order. */
const AHEAD_MS = 50 * 60_000;
const down = () => new UnavailableError('UNAVAILABLE', 'The peer is down.');

describe('a call to a peer that is unavailable', () => {
  let harness: RefundHarness;
  beforeEach(async () => {
    harness = await RefundHarness.start();
  });
  afterEach(() => harness.close());

  /** The failed executions of the orders of a kind. */
  const failures = (kind: string) =>
    harness.supervisor.spans
      .spans()
      .filter(({ name, status }) => name === `order ${kind}` && status.code === 'error');

  const untilRunning = async (runId: string) => {
    const stateNow = async () => (await harness.supervisor.runs().getRun({ runId })).run?.state;
    await expect.poll(stateNow, { timeout: 30_000 }).toBe(RunState.RUNNING);
  };

  it('is repeated only by the order that ends a run (SUP-8, TG-8)', async () => {
    const { fakes } = harness.supervisor;
    const agent = await harness.agent();
    const unused = await agent.propose('op-1', LOOK_UP);
    const receipt = await agent.receipt(unused, {}, { status: CallStatus.VOID, argsSha256: '' });
    fakes.answer(voidWrit, () => ({ state: VoidState.BURNT, receipt }));
    fakes.fail(freeze, down(), down());
    fakes.fail(voidWrit, down(), down());
    const { runId } = agent.scope;
    await harness.supervisor.runs().cancelRun({ requestId: 'c-1', runId });
    expect((await harness.ended(agent)).state).toBe(RunState.CANCELLED);
    // Freeze fails twice, and is called again before each attempt of VoidWrit, because freezing records no progress.
    expect(fakes.requests(freeze)).toHaveLength(5);
    expect(fakes.requests(voidWrit)).toHaveLength(3);
    expect(failures('end_run')).toHaveLength(4);
  });

  it('is repeated only by the order that wakes an agent (RT-3)', async () => {
    const { fakes } = harness.supervisor;
    const agent = await harness.agent();
    const { approvalId } = await agent.propose('op-1', refund(1200));
    fakes.fail(signal, down(), down());
    const answer = { case: 'reject', value: {} } as const;
    await harness.approvals().decideApproval({ approvalId, requestId: 'd-1', answer });
    await fakes.called(signal, 3);
    await untilRunning(agent.scope.runId);
    expect(fakes.requests(signal)).toHaveLength(3);
    expect(failures('wake_agent')).toHaveLength(2);
  });

  it('is repeated at once when the next attempt was scheduled with a clock that was ahead (BD-3)', async () => {
    const clock = new ManualClock(new Date());
    const skewed = await RefundHarness.start({ clock });
    onTestFinished(() => skewed.close());
    const { fakes, spans } = skewed.supervisor;
    const agent = await skewed.agent();
    let isAhead = false;
    fakes.answer(freeze, () => {
      if (isAhead) return {};
      isAhead = true;
      clock.step(AHEAD_MS);
      throw down();
    });
    const { runId } = agent.scope;
    await skewed.supervisor.runs().cancelRun({ requestId: 'c-1', runId });
    const failed = () =>
      spans
        .spans()
        .filter(({ name, status }) => name === 'order end_run' && status.code === 'error');
    await expect.poll(failed, { timeout: 30_000 }).toHaveLength(1);
    clock.step(-AHEAD_MS);
    const stateNow = async () => (await skewed.supervisor.runs().getRun({ runId })).run?.state;
    await expect.poll(stateNow, { timeout: 30_000 }).toBe(RunState.CANCELLED);
  });

  it('is retried while a client waits for its signal (RT-3)', async () => {
    const { fakes } = harness.supervisor;
    const agent = await harness.agent();
    const { runId } = agent.scope;
    await untilRunning(runId);
    fakes.fail(signal, down(), down());
    const request = { requestId: 's-1', runId, name: 'note' };
    expect(await harness.supervisor.runs().signalRun(request)).toMatchObject({ accepted: true });
    expect(fakes.requests(signal)).toHaveLength(3);
  });
});
