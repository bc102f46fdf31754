import { ApprovalState } from '@writ/contracts/writ/approval/v1/approval_pb';
import { AuditService } from '@writ/contracts/writ/audit/v1/audit_service_pb';
import { ControlService } from '@writ/contracts/writ/control/v1/control_service_pb';
import { Verdict } from '@writ/contracts/writ/review/v1/decision_pb';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { RefundHarness, refund, type TestAgent } from './refund-harness.ts';

const EDIT = { case: 'approveWithEdits', value: { changesJson: '{"amount_usd":700}' } } as const;
const REJECT = { case: 'reject', value: {} } as const;
/** Pairs of a withdrawal and an approval at the same time. */
const RACES = 12;

describe('a proposal that waits for a person', () => {
  let harness: RefundHarness;
  let requests = 0;
  beforeAll(async () => {
    harness = await RefundHarness.start();
  });
  afterAll(() => harness.close());

  const decide = (approvalId: string, answer: typeof EDIT | typeof REJECT = EDIT) =>
    harness
      .approvals('dora')
      .decideApproval({ approvalId, requestId: `withdraw-${++requests}`, answer });
  const approvalOf = async (approvalId: string) =>
    (await harness.approvals('dora').getApproval({ approvalId })).approval;
  const audited = async ({ scope: { runId } }: TestAgent) => {
    const { records } = await harness.supervisor
      .as('anna', AuditService)
      .listAuditRecords({ kind: 'approval' });
    const facts = records.map(({ canonicalJson }) => JSON.parse(canonicalJson));
    return facts.filter((record) => record.run_id === runId);
  };

  it('is withdrawn by its agent, cannot be approved, and gets no writ (AP-4, SV-5, SV-6, SV-8)', async () => {
    const agent = await harness.agent();
    const { approvalId } = await agent.propose('op-1', refund(1200));
    expect(await agent.withdraw('op-1')).toBe(true);
    expect(await approvalOf(approvalId)).toMatchObject({ state: ApprovalState.WITHDRAWN });
    for (const answer of [EDIT, REJECT]) {
      await expect(decide(approvalId, answer)).rejects.toMatchObject({
        reason: 'APPROVAL_DECIDED',
        message: expect.stringMatching(/was withdrawn at .*Z, by its agent\.$/),
        metadata: { state: 'withdrawn' },
      });
    }
    const withdrawn = {
      settled: true,
      writ: '',
      stopReason: 'withdrawn',
      verdict: Verdict.ESCALATE,
    };
    expect(await agent.getDecision('op-1')).toMatchObject(withdrawn);
    expect(await agent.propose('op-1', refund(1200))).toMatchObject(withdrawn);
    expect(await agent.withdraw('op-1')).toBe(true);
    await expect
      .poll(() => audited(agent))
      .toMatchObject([
        { approval_id: approvalId, state: 'pending' },
        { state: 'withdrawn', basis: 'withdrawn_by_agent' },
      ]);
    // An equal proposal with another call_id requires a new approval.
    expect(await agent.propose('op-2', refund(1200))).toMatchObject({ settled: false });
  });

  it('is not withdrawn after it is decided, or by another agent (AP-4, SV-5)', async () => {
    const agent = await harness.agent();
    const { approvalId } = await agent.propose('op-1', refund(1200));
    await decide(approvalId);
    expect(await agent.withdraw('op-1')).toBe(false);
    expect(await agent.getDecision('op-1')).toMatchObject({ stopReason: '', writ: /./ });
    const asked = await agent.propose('op-2', refund(1200));
    const other = await harness.agent();
    await expect(other.withdraw('op-2')).rejects.toMatchObject({ reason: 'DECISION_NOT_FOUND' });
    expect(await approvalOf(asked.approvalId)).toMatchObject({ state: ApprovalState.PENDING });
  });

  it('is withdrawn or approved, never both, when both happen at the same time (AP-4, SV-5)', async () => {
    for (let race = 0; race < RACES; race += 1) {
      const agent = await harness.agent();
      const { approvalId } = await agent.propose('op-1', refund(1200));
      const approval = () =>
        decide(approvalId).then(
          () => true,
          () => false,
        );
      const begun =
        race % 2 === 0
          ? [agent.withdraw('op-1'), approval()]
          : [approval(), agent.withdraw('op-1')].reverse();
      const [isWithdrawn, isApproved] = await Promise.all(begun);
      expect(isApproved).toBe(!isWithdrawn);
      const row = await approvalOf(approvalId);
      const { WITHDRAWN, APPROVED } = ApprovalState;
      expect(row?.state).toBe(isWithdrawn ? WITHDRAWN : APPROVED);
      const decision = await agent.getDecision('op-1');
      expect(decision?.writ === '').toBe(isWithdrawn);
    }
  });

  it('is withdrawn during a halt, too (AP-4, SV-9)', async () => {
    const agent = await harness.agent();
    const { approvalId } = await agent.propose('op-1', refund(1200));
    const control = harness.supervisor.as('anna', ControlService);
    const { runId } = agent.scope;
    const scope = { kind: { case: 'run', value: { tenant: 'acme', runId } } } as const;
    await control.halt({ requestId: 'halt-withdraw', scope, reason: 'It must stop.' });
    expect(await agent.withdraw('op-1')).toBe(true);
    expect(await approvalOf(approvalId)).toMatchObject({ state: ApprovalState.WITHDRAWN });
  });
});
