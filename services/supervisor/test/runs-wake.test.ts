import { RunState } from '@writ/contracts/writ/run/v1/run_pb';
import { AgentWorkerService } from '@writ/contracts/writ/worker/v1/agent_worker_service_pb';
import { ManualClock, UnavailableError } from '@writ/kernel';
import { afterEach, describe, expect, it } from 'vitest';
import { RefundHarness, refund, type TestAgent } from './refund-harness.ts';

describe('a run that waits for a human decision', () => {
  let harness: RefundHarness;
  afterEach(() => harness.close());

  const stateOf = async ({ scope: { runId } }: TestAgent) =>
    (await harness.supervisor.runs().getRun({ runId })).run?.state;

  const reject = async (approvalId: string) => {
    const decision = {
      approvalId,
      requestId: 'd-1',
      answer: { case: 'reject', value: {} },
    } as const;
    await harness.approvals('anna').decideApproval(decision);
  };

  it('is woken once with one request id, across retries and a restart (RT-3)', async () => {
    harness = await RefundHarness.start();
    const { fakes } = harness.supervisor;
    const agent = await harness.agent();
    const { approvalId } = await agent.propose('op-1', refund(1200));
    const { signal } = AgentWorkerService.method;
    fakes.fail(
      signal,
      new UnavailableError('UNAVAILABLE', 'The peer is down.'),
      () => new Promise(() => undefined),
    );
    await reject(approvalId);
    await fakes.called(signal, 2);
    await harness.supervisor.stop();
    await harness.supervisor.restart();
    await fakes.called(signal, 3);
    await expect.poll(() => stateOf(agent), { interval: 5 }).toBe(RunState.RUNNING);
    const sent = fakes.requests(signal);
    expect(new Set(sent.map(({ requestId }) => requestId)).size).toBe(1);
    expect(sent.at(-1)?.approval?.decision).toMatchObject({ stopReason: 'human_rejected' });
  });

  it('consumes no active time while it waits (EM-1)', async () => {
    const clock = new ManualClock(new Date());
    harness = await RefundHarness.start({ clock });
    const agent = await harness.agent();
    await expect.poll(() => stateOf(agent), { interval: 5 }).toBe(RunState.RUNNING);
    clock.advance(20_000);
    const { approvalId } = await agent.propose('op-1', refund(1200));
    clock.advance(10 * 60_000);
    await reject(approvalId);
    await expect.poll(() => stateOf(agent), { interval: 5 }).toBe(RunState.RUNNING);
    clock.advance(9_000);
    expect(await stateOf(agent)).toBe(RunState.RUNNING);
    clock.advance(2_000);
    await expect.poll(() => stateOf(agent), { interval: 5 }).toBe(RunState.TIMED_OUT);
  });

  it('receives no signal when it ended before the decision arrived', async () => {
    harness = await RefundHarness.start();
    const { fakes } = harness.supervisor;
    const agent = await harness.agent();
    const { approvalId } = await agent.propose('op-1', refund(1200));
    const { signal } = AgentWorkerService.method;
    fakes.fail(signal, new UnavailableError('UNAVAILABLE', 'The peer is down.'));
    await reject(approvalId);
    await fakes.called(signal);
    const { runId } = agent.scope;
    await harness.supervisor.runs().cancelRun({ requestId: 'c-1', runId });
    const run = await harness.ended(agent);
    expect(run).toMatchObject({
      state: RunState.CANCELLED,
      result: { trace: [{ ok: false, stopReason: 'human_rejected', humanApproved: false }] },
    });
  });
});
