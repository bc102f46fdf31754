import { ApprovalState } from '@writ/contracts/writ/approval/v1/approval_pb';
import { HookEventType } from '@writ/contracts/writ/hook/v1/hook_event_pb';
import { ExecutedFrom } from '@writ/contracts/writ/review/v1/action_pb';
import { Verdict } from '@writ/contracts/writ/review/v1/decision_pb';
import { RunState } from '@writ/contracts/writ/run/v1/run_pb';
import { AgentWorkerService } from '@writ/contracts/writ/worker/v1/agent_worker_service_pb';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { RefundHarness, refund, type TestAgent } from './refund-harness.ts';

const edits = (amountUsd: number, more: object = {}) => ({
  case: 'approveWithEdits' as const,
  value: {
    argumentsJson: JSON.stringify({
      user_id: 42,
      amount_usd: amountUsd,
      reason: 'Paid twice.',
      ...more,
    }),
  },
});
const APPROVE = { case: 'approve', value: {} } as const;
const REJECT = { case: 'reject', value: {} } as const;

describe('approvals', () => {
  let harness: RefundHarness;
  let requests = 0;
  beforeAll(async () => {
    harness = await RefundHarness.start();
  });
  afterAll(() => harness.close());

  const decide = (
    approvalId: string,
    answer: typeof APPROVE | typeof REJECT | ReturnType<typeof edits>,
    { person = 'dora' as const, comment = '', requestId = `d-${++requests}` } = {},
  ) => harness.approvals(person).decideApproval({ approvalId, requestId, answer, comment });

  const stateOf = async ({ scope: { runId } }: TestAgent) =>
    (await harness.supervisor.runs().getRun({ runId })).run?.state;

  /** The latest signal to the worker of a run. */
  const signalTo = async ({ scope: { runId } }: TestAgent) => {
    const { fakes } = harness.supervisor;
    const signals = () =>
      fakes.requests(AgentWorkerService.method.signal).filter((signal) => signal.runId === runId);
    await expect.poll(() => signals().length, { interval: 5 }).toBeGreaterThan(0);
    return signals().at(-1);
  };

  it('let a person approve a smaller amount, which the agent receives at once (SV-5, SV-6, HK-1)', async () => {
    const agent = await harness.agent();
    const escalated = await agent.propose('op-1', refund(1200));
    expect(escalated).toMatchObject({ verdict: Verdict.ESCALATE, settled: false, writ: '' });
    expect(await stateOf(agent)).toBe(RunState.SUSPENDED);
    const { approvalId } = escalated;
    const { approval: open } = await harness.approvals('dora').getApproval({ approvalId });
    expect(open).toMatchObject({
      state: ApprovalState.PENDING,
      runId: agent.scope.runId,
      callId: 'op-1',
      step: 1,
      reason: 'high_refund_requires_human',
      ruleId: 'refund-needs-a-person',
      risk: 0.8,
      runCreatedBy: 'anna',
      caps: [{ argument: 'amount_usd', maxJson: '800' }],
      action: escalated.action,
    });
    const { approval } = await decide(approvalId, edits(800));
    expect(approval).toMatchObject({
      state: ApprovalState.APPROVED,
      humanApproval: { approved: true, basis: 'approved_with_cap:800', decidedBy: 'dora' },
    });
    const signal = await signalTo(agent);
    expect(signal?.name).toBe('approval:op-1');
    const decision = signal?.approval?.decision;
    expect(decision).toMatchObject({
      settled: true,
      verdict: Verdict.ESCALATE,
      executedFrom: ExecutedFrom.HUMAN_REVISED,
      executedAction: approval?.executedAction,
      humanApproval: approval?.humanApproval,
      stopReason: '',
    });
    const claims = await harness.writClaims(agent, decision);
    expect(claims.executedFrom).toBe('human_revised');
    await expect.poll(() => stateOf(agent), { interval: 5 }).toBe(RunState.RUNNING);
    // The approved amount now counts toward the cap.
    expect((await agent.propose('op-2', refund(1300))).revisedAction?.kind.value).toMatchObject({
      argumentsJson: expect.stringContaining('"amount_usd":1200,'),
    });
    const types = await hookTypes(agent);
    expect(types).toEqual(
      expect.arrayContaining([HookEventType.APPROVAL_REQUESTED, HookEventType.APPROVAL_DECIDED]),
    );
  });

  const hookTypes = async ({ scope: { runId } }: TestAgent) => {
    const types: HookEventType[] = [];
    for await (const { event } of harness.supervisor.runs().watchRun({ runId })) {
      if (event?.entry.case === 'hook') types.push(event.entry.value.type);
      if (types.includes(HookEventType.APPROVAL_DECIDED)) break;
    }
    return types;
  };

  it('publish a decision to the timeline when it is made and when it is settled, without its writ', async () => {
    const agent = await harness.agent();
    const { approvalId } = await agent.propose('op-1', refund(1200));
    await decide(approvalId, edits(700));
    const decisions = [];
    const { runId } = agent.scope;
    for await (const { event } of harness.supervisor.runs().watchRun({ runId })) {
      if (event?.entry.case === 'decision') decisions.push(event.entry.value);
      if (decisions.length === 2) break;
    }
    expect(decisions.map(({ settled, writ }) => [settled, writ])).toEqual([
      [false, ''],
      [true, ''],
    ]);
    expect(decisions[1]?.humanApproval?.decidedBy).toBe('dora');
  });

  it('check an approval against the current rules and the approver’s own cap (SV-5)', async () => {
    const agent = await harness.agent();
    const { approvalId } = await agent.propose('op-1', refund(1200));
    await expect(decide(approvalId, APPROVE)).rejects.toMatchObject({
      reason: 'APPROVAL_ABOVE_CAP',
      message: "amount_usd 1200 exceeds dora's cap of 800 USD for issue_refund.",
      metadata: { argument: 'amount_usd', cap: '800' },
    });
    await expect(decide(approvalId, edits(801))).rejects.toMatchObject({
      reason: 'APPROVAL_ABOVE_CAP',
    });
    await expect(decide(approvalId, edits(0))).rejects.toMatchObject({
      reason: 'APPROVAL_REJECTED_BY_POLICY',
      metadata: { policy_reason: 'invalid_refund_amount' },
    });
    await expect(decide(approvalId, edits(5, { to: 'me' }))).rejects.toMatchObject({
      reason: 'INVALID_ARGUMENTS',
      metadata: { argument: 'to' },
    });
    await expect(
      decide(approvalId, { case: 'approveWithEdits', value: { argumentsJson: '[]' } }),
    ).rejects.toMatchObject({ reason: 'INVALID_ARGUMENTS' });
    const accepted = await decide(approvalId, edits(600));
    expect(accepted).toMatchObject({
      proposedArgumentsJson: '',
      approval: { state: ApprovalState.APPROVED },
    });
  });

  it('refuse an action whose arguments the policy would block (SV-5)', async () => {
    const agent = await harness.agent();
    const { approvalId } = await agent.propose('op-1', refund(1200));
    await agent.propose('op-2', refund(1000));
    await agent.propose('op-3', refund(1000));
    await expect(decide(approvalId, edits(100))).rejects.toMatchObject({
      reason: 'APPROVAL_REJECTED_BY_POLICY',
      metadata: { policy_reason: 'refund_budget_exhausted' },
    });
  });

  it('stop the action when a person rejects it (SV-5)', async () => {
    const agent = await harness.agent();
    const { approvalId } = await agent.propose('op-1', refund(1200));
    const { approval } = await decide(approvalId, REJECT, { comment: 'Not this one.' });
    expect(approval).toMatchObject({
      state: ApprovalState.REJECTED,
      humanApproval: { approved: false, comment: 'Not this one.', decidedBy: 'dora' },
    });
    expect(approval?.executedAction).toBeUndefined();
    const signal = await signalTo(agent);
    expect(signal?.approval?.decision).toMatchObject({
      settled: true,
      stopReason: 'human_rejected',
      writ: '',
      humanApproval: { approved: false },
    });
    expect((await agent.propose('op-1', refund(1200))).stopReason).toBe('human_rejected');
  });

  it('need the gateway to approve but not to reject (SYS-4)', async () => {
    const fresh = await RefundHarness.start();
    try {
      const agent = await fresh.agent();
      const { approvalId } = await agent.propose('op-1', refund(1200));
      await fresh.supervisor.stop();
      fresh.stopGateway();
      await fresh.supervisor.restart();
      const answer = (requestId: string, given: typeof REJECT | ReturnType<typeof edits>) =>
        fresh.approvals().decideApproval({ approvalId, requestId, answer: given });
      await expect(answer('d-1', edits(800))).rejects.toMatchObject({
        reason: 'TOOL_LIST_UNAVAILABLE',
      });
      const { approval } = await answer('d-2', REJECT);
      expect(approval?.state).toBe(ApprovalState.REJECTED);
    } finally {
      await fresh.close();
    }
  });

  it('are decided once when several people decide concurrently, and each rejection names the decider (SV-5)', async () => {
    const agent = await harness.agent();
    const { approvalId } = await agent.propose('op-1', refund(1200));
    const answers = await Promise.allSettled([
      decide(approvalId, edits(800), { person: 'dora' }),
      harness.approvals('anna').decideApproval({ approvalId, requestId: 'race-1', answer: REJECT }),
      decide(approvalId, REJECT, { person: 'dora' }),
    ]);
    const won = answers.filter((answer) => answer.status === 'fulfilled');
    const lost = answers.flatMap((answer) => (answer.status === 'rejected' ? [answer.reason] : []));
    expect(won).toHaveLength(1);
    const decidedBy = won[0]?.value.approval?.humanApproval?.decidedBy;
    for (const error of lost) {
      expect(error).toMatchObject({
        reason: 'APPROVAL_DECIDED',
        metadata: { decided_by: decidedBy },
        message: expect.stringContaining(`by ${decidedBy}`),
      });
    }
  });

  it('answer a repeated request with the current state and reject a reused request_id', async () => {
    const agent = await harness.agent();
    const { approvalId } = await agent.propose('op-1', refund(1200));
    const first = await decide(approvalId, edits(500), { requestId: 'same' });
    expect(await decide(approvalId, edits(500), { requestId: 'same' })).toEqual(first);
    await expect(decide(approvalId, edits(501), { requestId: 'same' })).rejects.toMatchObject({
      reason: 'REQUEST_ID_REUSED',
    });
    const other = await (await harness.agent()).propose('op-1', refund(1200));
    await expect(decide(other.approvalId, REJECT, { requestId: 'same' })).rejects.toMatchObject({
      reason: 'REQUEST_ID_REUSED',
    });
  });

  it('belong to one tenant and require the approver role (SYS-6)', async () => {
    const agent = await harness.agent();
    const { approvalId } = await agent.propose('op-1', refund(1200));
    await expect(harness.approvals('eve').getApproval({ approvalId })).rejects.toMatchObject({
      reason: 'APPROVAL_NOT_FOUND',
    });
    await expect(
      harness.approvals('eve').decideApproval({ approvalId, requestId: 'e-1', answer: REJECT }),
    ).rejects.toMatchObject({ reason: 'APPROVAL_NOT_FOUND' });
    expect((await harness.approvals('eve').listApprovals({})).approvals).toEqual([]);
    await expect(harness.approvals('boris').getApproval({ approvalId })).rejects.toMatchObject({
      kind: 'permission_denied',
    });
  });

  it('are withdrawn with their run and can no longer be decided', async () => {
    const agent = await harness.agent();
    const { approvalId } = await agent.propose('op-1', refund(1200));
    const { runId } = agent.scope;
    await harness.supervisor.runs().cancelRun({ requestId: `c-${runId}`, runId });
    await expect(decide(approvalId, REJECT)).rejects.toMatchObject({
      reason: expect.stringMatching(/^(RUN_ENDED|APPROVAL_DECIDED)$/),
    });
    await harness.ended(agent);
    const { approval } = await harness.approvals().getApproval({ approvalId });
    expect(approval).toMatchObject({ state: ApprovalState.WITHDRAWN });
    expect(approval?.humanApproval).toBeUndefined();
    await expect(decide(approvalId, edits(1))).rejects.toMatchObject({
      reason: 'APPROVAL_DECIDED',
      metadata: { state: 'withdrawn' },
    });
  });
});
