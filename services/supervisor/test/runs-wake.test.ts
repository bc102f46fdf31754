import { RunState } from '@writ/contracts/writ/run/v1/run_pb';
import { AgentWorkerService } from '@writ/contracts/writ/worker/v1/agent_worker_service_pb';
import { ManualClock, UnavailableError } from '@writ/kernel';
import { afterEach, describe, expect, it } from 'vitest';
import { type DeskAgent, RefundDesk, refund } from './refund-desk.ts';

describe('a run that waits for a person', () => {
  let desk: RefundDesk;
  afterEach(() => desk.close());

  const stateOf = async ({ scope: { runId } }: DeskAgent) =>
    (await desk.supervisor.runs().getRun({ runId })).run?.state;

  const reject = async (approvalId: string) => {
    const decision = {
      approvalId,
      requestId: 'd-1',
      answer: { case: 'reject', value: {} },
    } as const;
    await desk.approvals('anna').decideApproval(decision);
  };

  it('is woken once, under one id, however often the worker is asked and whoever dies (RT-3)', async () => {
    desk = await RefundDesk.start();
    const { fakes } = desk.supervisor;
    const agent = await desk.agent();
    const { approvalId } = await agent.propose('op-1', refund(1200));
    const { signal } = AgentWorkerService.method;
    fakes.fail(
      signal,
      new UnavailableError('UNAVAILABLE', 'Away.'),
      () => new Promise(() => undefined),
    );
    await reject(approvalId);
    await fakes.called(signal, 2);
    await desk.supervisor.stop();
    await desk.supervisor.startAgain();
    await fakes.called(signal, 3);
    await expect.poll(() => stateOf(agent), { interval: 5 }).toBe(RunState.RUNNING);
    const sent = fakes.requests(signal);
    expect(new Set(sent.map(({ requestId }) => requestId)).size).toBe(1);
    expect(sent.at(-1)?.approval?.decision).toMatchObject({ stopReason: 'human_rejected' });
  });

  it('does not use up its active time meanwhile (EM-1)', async () => {
    const clock = new ManualClock(new Date());
    desk = await RefundDesk.start({ clock });
    const agent = await desk.agent();
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

  it('is told nothing when it ended before the answer came through', async () => {
    desk = await RefundDesk.start();
    const { fakes } = desk.supervisor;
    const agent = await desk.agent();
    const { approvalId } = await agent.propose('op-1', refund(1200));
    const { signal } = AgentWorkerService.method;
    fakes.fail(signal, new UnavailableError('UNAVAILABLE', 'Away.'));
    await reject(approvalId);
    await fakes.called(signal);
    const { runId } = agent.scope;
    await desk.supervisor.runs().cancelRun({ requestId: 'c-1', runId });
    const run = await desk.ended(agent);
    expect(run).toMatchObject({
      state: RunState.CANCELLED,
      result: { trace: [{ ok: false, stopReason: 'human_rejected', humanApproved: false }] },
    });
  });
});
