import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { ApprovalService } from '@writ/contracts/writ/approval/v1/approval_service_pb';
import { AuditService } from '@writ/contracts/writ/audit/v1/audit_service_pb';
import { RunState } from '@writ/contracts/writ/run/v1/run_pb';
import {
  AgentPresence,
  AgentWorkerService,
} from '@writ/contracts/writ/worker/v1/agent_worker_service_pb';
import { ManualClock, NotFoundError, UnavailableError } from '@writ/kernel';
import { afterEach, describe, expect, it, onTestFinished } from 'vitest';
import { Family } from './family.ts';
import { publishHook } from './publish-hook.ts';
import { LOOK_UP, RefundHarness, refund, type TestAgent } from './refund-harness.ts';
import { openSecondStore, type SupervisorUnderTest } from './supervisor-under-test.ts';

const REJECT = { case: 'reject', value: {} } as const;
const APPROVE_LESS = {
  case: 'approveWithEdits',
  value: { changesJson: '{"amount_usd":500}' },
} as const;

/** Resolves when the supervisor has executed all its orders. */
async function expectNoOpenOrders(supervisor: SupervisorUnderTest): Promise<void> {
  const store = await openSecondStore(supervisor);
  onTestFinished(() => store.close());
  const openOrders = () =>
    store.db.selectFrom('orders').select('kind').where('state', '=', 'open').execute();
  await expect.poll(openOrders).toEqual([]);
}

describe('a run that waits for a human decision', () => {
  let harness: RefundHarness;
  afterEach(() => harness.close());

  const stateOf = async ({ scope: { runId } }: TestAgent) =>
    (await harness.supervisor.runs().getRun({ runId })).run?.state;

  const decide = async (approvalId: string, answer: typeof REJECT | typeof APPROVE_LESS) => {
    await harness.approvals('dora').decideApproval({ approvalId, requestId: 'd-1', answer });
  };
  const reject = (approvalId: string) => decide(approvalId, REJECT);

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

  it('is woken with one new writ however often the signal is repeated (SV-6, SV-8)', async () => {
    harness = await RefundHarness.start();
    const { fakes } = harness.supervisor;
    const agent = await harness.agent();
    const { approvalId } = await agent.propose('op-1', refund(1200));
    const { signal } = AgentWorkerService.method;
    const down = () => new UnavailableError('UNAVAILABLE', 'The peer is down.');
    fakes.fail(signal, down(), down(), down(), down());
    await decide(approvalId, APPROVE_LESS);
    await fakes.called(signal, 5);
    await expect.poll(() => stateOf(agent), { interval: 5 }).toBe(RunState.RUNNING);
    const sent = fakes.requests(signal).map(({ approval }) => approval?.decision);
    expect(sent.map((decision) => decision?.writ !== '')).toEqual([true, ...Array(4).fill(false)]);
    expect(sent.at(-1)).toMatchObject({ settled: true, stopReason: '' });
    const { runId } = agent.scope;
    const audit = harness.supervisor.as('anna', AuditService);
    expect((await audit.listAuditRecords({ runId, kind: 'writ' })).records).toHaveLength(1);
    // The worker reads a new writ when it executes the call.
    expect((await agent.getDecision('op-1'))?.writ).not.toBe('');
  });

  it('ends when its worker does not know the agent that the decision wakes (BD-3)', async () => {
    harness = await RefundHarness.start({ config: { reconcileMs: 20 } });
    const { fakes } = harness.supervisor;
    const { findAgents, signal } = AgentWorkerService.method;
    let presence: AgentPresence = AgentPresence.ALIVE;
    fakes.answer(findAgents, ({ agents }) => ({ presences: agents.map(() => presence) }));
    fakes.answer(signal, ({ agentInstance }) => {
      presence = AgentPresence.UNKNOWN;
      throw new NotFoundError('AGENT_NOT_FOUND', `Agent ${agentInstance} does not exist.`);
    });
    const agent = await harness.agent();
    const { approvalId } = await agent.propose('op-1', refund(1200));
    await reject(approvalId);
    await expect.poll(() => stateOf(agent)).toBe(RunState.ERROR);
    expect((await harness.ended(agent)).result?.stopReason).toBe('error:agent_lost');
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

  it('still waits for a person whom its agent asked before the signal was answered (AG-7, EM-1)', async () => {
    const clock = new ManualClock(new Date());
    harness = await RefundHarness.start({ clock });
    const { supervisor } = harness;
    const agent = await harness.agent();
    const { runId, agentInstance: instance } = agent.scope;
    const { approvalId } = await agent.propose('op-1', refund(1200));
    const report = (type: 'AGENT_SUSPENDED' | 'AGENT_WOKEN', number: bigint, waitingFor = '') =>
      publishHook(supervisor, {
        eventId: `evt_${number}`,
        type,
        emitter: 'spawn-budget',
        eventTime: timestampFromDate(clock.now()),
        runId,
        agent: { name: 'refund-worker', instance },
        waitingFor,
        slotSequence: number,
      });
    await report('AGENT_SUSPENDED', 1n, 'approval:op-1');
    supervisor.fakes.fail(AgentWorkerService.method.signal, async () => {
      await report('AGENT_WOKEN', 2n);
      await report('AGENT_SUSPENDED', 3n, 'human_reply:ses-1');
      await expect.poll(() => stateOf(agent)).toBe(RunState.WAITING_FOR_INPUT);
    });
    await reject(approvalId);
    const woken = () => supervisor.spans.spans().filter(({ name }) => name === 'order wake_agent');
    await expect.poll(woken).toMatchObject([{ status: { code: 'unset' } }]);
    expect(await stateOf(agent)).toBe(RunState.WAITING_FOR_INPUT);
    // The wait consumes none of the 30 s of active time.
    clock.advance(10 * 60_000);
    await report('AGENT_WOKEN', 4n);
    expect(await stateOf(agent)).toBe(RunState.RUNNING);
    expect((await agent.propose('op-2', LOOK_UP)).stopReason).toBe('');
  });

  it('keeps the rejection in its trace and receives no further signal when it ends before a signal succeeds', async () => {
    harness = await RefundHarness.start();
    const { fakes } = harness.supervisor;
    const agent = await harness.agent();
    const { approvalId } = await agent.propose('op-1', refund(1200));
    const { signal } = AgentWorkerService.method;
    let isDown = true;
    fakes.answer(signal, () => {
      if (isDown) throw new UnavailableError('UNAVAILABLE', 'The peer is down.');
      return { accepted: true };
    });
    await reject(approvalId);
    await fakes.called(signal);
    const { runId } = agent.scope;
    await harness.supervisor.runs().cancelRun({ requestId: 'c-1', runId });
    const run = await harness.ended(agent);
    expect(run).toMatchObject({
      state: RunState.CANCELLED,
      result: { trace: [{ ok: false, stopReason: 'human_rejected', humanApproved: false }] },
    });
    const sent = fakes.requests(signal).length;
    isDown = false;
    await expectNoOpenOrders(harness.supervisor);
    expect(fakes.requests(signal)).toHaveLength(sent);
  });
});

describe('the approved answer of a child', () => {
  const POLICY = `
policy: answers
rules:
  - id: ask
    match: { kind: final }
    decide: escalate
    reason: answer
  - id: rest
    decide: approve
    reason: fine
`;

  it('is sent to the worker of the child until the run ends (AG-3, BD-3)', async () => {
    const config = { policy: { text: POLICY, file: 'policy.yaml' } };
    const family = await Family.start({ config });
    onTestFinished(() => family.close());
    const { supervisor } = family;
    const { signal } = AgentWorkerService.method;
    supervisor.fakes.answer(signal, ({ agentInstance }) => {
      throw new NotFoundError('AGENT_NOT_FOUND', `Agent ${agentInstance} does not exist.`);
    });
    const lead = await family.lead();
    const scout = await lead.child('op-1');
    const { approvalId } = await scout.final('op-1');
    const answer = { case: 'approve', value: {} } as const;
    const approvals = supervisor.as('dora', ApprovalService);
    await approvals.decideApproval({ approvalId, requestId: 'd-1', answer });
    await supervisor.fakes.called(signal, 3);
    await family.cancelled(lead.runId);
    await expectNoOpenOrders(supervisor);
  });
});
