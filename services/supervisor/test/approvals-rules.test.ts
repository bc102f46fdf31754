import { readFileSync } from 'node:fs';
import type { MessageInitShape } from '@bufbuild/protobuf';
import { ApprovalKind, ApprovalState } from '@writ/contracts/writ/approval/v1/approval_pb';
import type { DecideApprovalRequestSchema } from '@writ/contracts/writ/approval/v1/approval_service_pb';
import { CallStatus } from '@writ/contracts/writ/identity/v1/claims_pb';
import { Verdict } from '@writ/contracts/writ/review/v1/decision_pb';
import { RunState } from '@writ/contracts/writ/run/v1/run_pb';
import {
  ResolvedOutcome,
  ToolGatewayService,
} from '@writ/contracts/writ/tool/v1/tool_gateway_service_pb';
import { AgentWorkerService } from '@writ/contracts/writ/worker/v1/agent_worker_service_pb';
import { ManualClock } from '@writ/kernel';
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import {
  CONTEXT,
  finalText,
  LOOK_UP,
  RefundHarness,
  refund,
  type TestAgent,
} from './refund-harness.ts';
import { exampleFile, refundTools } from './refund-tools.ts';

const policyText = readFileSync(exampleFile('policy.yaml'), 'utf8');
const APPROVE = { case: 'approve', value: {} } as const;
const REJECT = { case: 'reject', value: {} } as const;
const refunded = { status: 'ok', refund: { amount_usd: 250 } };

describe('approvals with a modified policy', () => {
  let harness: RefundHarness;
  afterEach(() => harness.close());

  const under = async (text: string, config = {}) => {
    harness = await RefundHarness.start({
      config: { policy: { text, file: 'policy.yaml' }, ...config },
    });
  };

  it('never exceed a run limit of 2,000 when two refunds of 1,200 are pending (SV-5)', async () => {
    await under(policyText.replace('max_usd: 800', 'max_usd: 5000'));
    const agent = await harness.agent();
    const first = await agent.propose('op-1', refund(1200));
    const second = await agent.propose('op-2', refund(1200));
    const approve = (approvalId: string, requestId: string) =>
      harness.approvals('dora').decideApproval({ approvalId, requestId, answer: APPROVE });
    const answers = await Promise.all([
      approve(first.approvalId, 'd-1'),
      approve(second.approvalId, 'd-2'),
    ]);
    const states = answers.map(({ approval }) => approval?.state);
    expect(states.toSorted()).toEqual([ApprovalState.PENDING, ApprovalState.APPROVED]);
    const left = answers.find(({ approval }) => approval?.state === ApprovalState.PENDING);
    expect(JSON.parse(left?.proposedArgumentsJson ?? '')).toMatchObject({ amount_usd: 800 });
    const { approval } = await harness.approvals('dora').decideApproval({
      approvalId: left?.approval?.approvalId ?? '',
      requestId: 'd-3',
      answer: {
        case: 'approveWithEdits',
        value: { argumentsJson: left?.proposedArgumentsJson ?? '' },
      },
    });
    expect(approval?.state).toBe(ApprovalState.APPROVED);
    expect((await agent.propose('op-3', refund(1))).reason).toBe('refund_budget_exhausted');
  });

  it('are required by risk without a rule for the tool (SV-1)', async () => {
    await under(policyText, {
      agents: {
        file: 'agents.yaml',
        text: readFileSync(exampleFile('agents.yaml'), 'utf8').replace(
          'on_refusal: stop',
          'on_refusal: stop\n    approval_required_risk: 0.7',
        ),
      },
    });
    const agent = await harness.agent();
    const escalated = await agent.propose('op-1', refund(5));
    expect(escalated).toMatchObject({
      verdict: Verdict.ESCALATE,
      reason: 'risk_requires_approval',
      risk: 0.7,
    });
    expect((await agent.propose('op-2', LOOK_UP)).verdict).toBe(Verdict.APPROVE);
    const { approval } = await harness.approvals('dora').decideApproval({
      approvalId: escalated.approvalId,
      requestId: 'd-1',
      answer: APPROVE,
    });
    expect(approval).toMatchObject({
      state: ApprovalState.APPROVED,
      humanApproval: { comment: '', basis: 'approved_with_cap:5' },
    });
  });

  it('end the run when they approve a final answer (SV-1, SV-5)', async () => {
    await under(
      policyText.replace(
        'decide: approve\n    reason: final_with_context',
        'decide: escalate\n    reason: answers_are_read\n    risk: 10\n\n  - id: final-read\n    match: { kind: final }\n    decide: approve\n    reason: final_with_context',
      ),
    );
    const agent = await harness.agent();
    const receipt = await agent.execute('op-1', LOOK_UP, CONTEXT);
    const escalated = await agent.propose('op-2', finalText('Done.'), { receipts: [receipt] });
    expect(escalated).toMatchObject({ reason: 'answers_are_read', runEnded: false });
    const { approvalId } = escalated;
    await expect(
      harness.approvals().decideApproval({
        approvalId,
        requestId: 'd-1',
        answer: { case: 'approveWithEdits', value: { argumentsJson: '{}' } },
      }),
    ).rejects.toMatchObject({ reason: 'EDITS_REQUIRE_TOOL_CALL' });
    const decision = { approvalId, requestId: 'd-2', answer: APPROVE, comment: 'Correct.' };
    const { approval } = await harness.approvals().decideApproval(decision);
    expect(approval?.humanApproval?.comment).toBe('Correct.');
    const run = await harness.ended(agent);
    expect(run).toMatchObject({
      state: RunState.COMPLETED,
      result: { stopReason: 'success', answer: 'Done.' },
    });
    expect(run.result?.trace.at(-1)).toMatchObject({ ok: true, humanApproved: true });
  });
});

describe('an approval of a tool whose schema changed since the escalation', () => {
  it('is rejected with an error that names the argument, and the field if there are edits (SV-5, SYS-3)', async () => {
    const clock = new ManualClock(new Date());
    const harness = await RefundHarness.start({ clock });
    onTestFinished(() => harness.close());
    const agent = await harness.agent();
    const { approvalId } = await agent.propose('op-1', refund(1200));
    const inputSchemaJson = JSON.stringify({
      type: 'object',
      properties: { user_id: { type: 'integer' }, reason: { type: 'string' } },
      additionalProperties: false,
    });
    const tools = refundTools().map((tool) =>
      tool.name === 'issue_refund' ? { ...tool, inputSchemaJson } : tool,
    );
    harness.listTools(tools, 'v2');
    clock.advance(3_000);
    type Answer = NonNullable<MessageInitShape<typeof DecideApprovalRequestSchema>['answer']>;
    const decide = (answer: Answer) =>
      harness.approvals('dora').decideApproval({ approvalId, requestId: 'd-1', answer });
    const problem = 'Argument amount_usd is not defined by the tool.';
    await expect(decide(APPROVE)).rejects.toMatchObject({
      reason: 'INVALID_ARGUMENTS',
      message: `Tool issue_refund does not accept the arguments: ${problem} Approve with edits, or reject the action.`,
      metadata: expect.not.objectContaining({ field: expect.anything() }),
    });
    const value = { changesJson: '{"reason":"Mine."}' };
    await expect(decide({ case: 'approveWithEdits', value })).rejects.toMatchObject({
      reason: 'INVALID_ARGUMENTS',
      message: `approve_with_edits: ${problem}`,
      metadata: { field: 'approve_with_edits', argument: 'amount_usd' },
    });
  });
});

describe('calls with an unknown outcome', () => {
  const clock = new ManualClock(new Date());
  let harness: RefundHarness;
  let agent: TestAgent;
  let approvalId: string;
  let resolution: string;

  beforeEach(async () => {
    harness = await RefundHarness.start({ clock, config: { approvalTtlMs: 60_000 } });
    agent = await harness.agent();
    const paid = await agent.propose('op-1', refund(250));
    await harness.report(
      await agent.receipt(
        paid,
        {},
        {
          status: CallStatus.UNKNOWN,
          stopReason: 'outcome_unknown:issue_refund',
        },
      ),
    );
    const { approvals } = await harness.approvals().listApprovals({});
    expect(approvals).toMatchObject([
      {
        kind: ApprovalKind.RESOLVE,
        state: ApprovalState.PENDING,
        callId: 'op-1',
        reason: 'outcome_unknown:issue_refund',
      },
    ]);
    approvalId = approvals[0]?.approvalId ?? '';
    resolution = await agent.receipt(paid, refunded, { revision: 2, resolvedBy: 'dora' });
    harness.supervisor.fakes.answer(ToolGatewayService.method.resolveOutcome, () => ({
      receipt: resolution,
    }));
  });
  afterEach(() => harness.close());

  const resolve = (
    person: 'dora' | 'anna',
    requestId: string,
    outcome: ResolvedOutcome = ResolvedOutcome.DONE,
    resultJson = '{}',
  ) =>
    harness.approvals(person).decideApproval({
      approvalId,
      requestId,
      answer: { case: 'resolve', value: { outcome, resultJson } },
      comment: 'Seen at the bank.',
    });

  it('are escalated to a person, whose resolution the gateway records once (TG-5)', async () => {
    await expect(
      harness.approvals().decideApproval({ approvalId, requestId: 'd-1', answer: REJECT }),
    ).rejects.toMatchObject({ reason: 'ANSWER_MISMATCH' });
    const resolved = await resolve('dora', 'd-2');
    expect(resolved.approval).toMatchObject({
      state: ApprovalState.RESOLVED,
      humanApproval: { approved: true, decidedBy: 'dora', comment: 'Seen at the bank.' },
    });
    const { fakes } = harness.supervisor;
    expect(fakes.requests(ToolGatewayService.method.resolveOutcome)[0]).toMatchObject({
      call: { runId: agent.scope.runId, callId: 'op-1' },
      outcome: ResolvedOutcome.DONE,
      resolvedBy: 'dora',
    });
    await fakes.called(AgentWorkerService.method.signal);
    expect(fakes.requests(AgentWorkerService.method.signal)[0]).toMatchObject({
      name: 'approval:op-1',
      approval: { decision: { settled: true, stopReason: '' } },
    });
    expect(await resolve('dora', 'd-2')).toEqual(resolved);
    await expect(resolve('anna', 'd-3')).rejects.toMatchObject({
      reason: 'APPROVAL_DECIDED',
      metadata: { decided_by: 'dora' },
    });
  });

  it('stay pending and are not sent to the gateway when the request_id was used before (TG-5)', async () => {
    const other = await (await harness.agent()).propose('op-1', refund(1200));
    const rejected = { approvalId: other.approvalId, requestId: 'd-1', answer: REJECT };
    await harness.approvals('dora').decideApproval(rejected);
    await expect(resolve('dora', 'd-1')).rejects.toMatchObject({ reason: 'REQUEST_ID_REUSED' });
    const { fakes } = harness.supervisor;
    expect(fakes.requests(ToolGatewayService.method.resolveOutcome)).toEqual([]);
    const { approval } = await harness.approvals().getApproval({ approvalId });
    expect(approval?.state).toBe(ApprovalState.PENDING);
    expect((await resolve('dora', 'd-2')).approval?.state).toBe(ApprovalState.RESOLVED);
  });

  it('report the person whose resolution reached the gateway first (TG-5)', async () => {
    await expect(resolve('anna', 'd-1')).rejects.toMatchObject({
      reason: 'APPROVAL_DECIDED',
      metadata: { decided_by: 'dora' },
    });
  });

  it('are settled by a resolution receipt that arrives after a crash (TG-5)', async () => {
    await harness.report(resolution);
    const { approval } = await harness.approvals().getApproval({ approvalId });
    expect(approval).toMatchObject({
      state: ApprovalState.RESOLVED,
      humanApproval: { decidedBy: 'dora' },
    });
  });

  it('accept the recorded resolution from the same person only (TG-5)', async () => {
    await harness.report(resolution);
    const late = { reason: 'APPROVAL_DECIDED', metadata: { decided_by: 'dora' } };
    await expect(resolve('anna', 'd-1')).rejects.toMatchObject(late);
    const undone = resolve('dora', 'd-2', ResolvedOutcome.NOT_DONE, '');
    await expect(undone).rejects.toMatchObject(late);
    const { approval } = await resolve('dora', 'd-3');
    expect(approval).toMatchObject({
      state: ApprovalState.RESOLVED,
      humanApproval: { decidedBy: 'dora', comment: 'Seen at the bank.' },
    });
    expect((await resolve('dora', 'd-3')).approval).toEqual(approval);
    await expect(resolve('dora', 'd-4')).rejects.toMatchObject(late);
  });

  it('stop the run when the approval expires (TG-5)', async () => {
    clock.advance(60_000);
    const { fakes } = harness.supervisor;
    await fakes.called(AgentWorkerService.method.signal);
    expect(fakes.requests(AgentWorkerService.method.signal)[0]?.approval?.decision).toMatchObject({
      stopReason: 'outcome_unknown:issue_refund',
    });
    const { approval } = await harness.approvals().getApproval({ approvalId });
    expect(approval?.state).toBe(ApprovalState.EXPIRED);
  });
});
