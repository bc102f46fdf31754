import { readFileSync } from 'node:fs';
import type { MessageInitShape } from '@bufbuild/protobuf';
import { ApprovalService } from '@writ/contracts/writ/approval/v1/approval_service_pb';
import { AuditService } from '@writ/contracts/writ/audit/v1/audit_service_pb';
import { ExecutionMeterService } from '@writ/contracts/writ/meter/v1/execution_meter_service_pb';
import { Verdict } from '@writ/contracts/writ/review/v1/decision_pb';
import { RunState, RunStatus } from '@writ/contracts/writ/run/v1/run_pb';
import { SpawnBudgetService } from '@writ/contracts/writ/spawn/v1/spawn_budget_service_pb';
import type { AllowRuleSchema } from '@writ/contracts/writ/tool/v1/tool_pb';
import { AgentWorkerService } from '@writ/contracts/writ/worker/v1/agent_worker_service_pb';
import {
  BudgetExhaustedError,
  type JsonObject,
  ManualClock,
  PreconditionError,
} from '@writ/kernel';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Family, type Member } from './family.ts';
import {
  CONTEXT,
  finalText,
  LOOK_UP,
  RefundHarness,
  refund,
  type TestAgent,
  toolText,
} from './refund-harness.ts';
import { exampleFile, refundTools } from './refund-tools.ts';

const policyText = readFileSync(exampleFile('policy.yaml'), 'utf8');
const agentsText = readFileSync(exampleFile('agents.yaml'), 'utf8');
const FINAL = finalText('Done.');
const REFUSED = { status: 'error', error: 'refund_user_not_found:42' };

describe('the effects of a run', () => {
  let harness: RefundHarness;
  afterEach(() => harness.close());

  const start = async (config: Parameters<typeof RefundHarness.start>[0] = {}) => {
    harness = await RefundHarness.start(config);
    return await harness.agent();
  };

  /** Looks up the customer, proposes a refund, reports its receipt if `result` is set, and proposes a final answer. */
  const endAfter = async (agent: TestAgent, amount: number, result?: JsonObject) => {
    const receipts = [await agent.execute('op-1', LOOK_UP, CONTEXT)];
    const decision = await agent.propose('op-2', refund(amount), { receipts });
    const paid = result && [await agent.receipt(decision, result)];
    return await agent.propose('op-3', FINAL, { receipts: paid ?? [] });
  };

  it('are blocked, and no approval is opened, when the agent may not call the tool (SV-1, TG-2)', async () => {
    const text = agentsText.replace(
      'tools: &tools [get_refund_context, issue_refund, send_refund_email]',
      'tools: &tools [get_refund_context, send_refund_email]',
    );
    const agent = await start({ config: { agents: { text, file: 'agents.yaml' } } });
    for (const [callId, amount] of [
      ['op-1', 1200],
      ['op-2', 5],
    ] as const) {
      const refused = await agent.propose(callId, refund(amount));
      expect(refused).toMatchObject({
        verdict: Verdict.BLOCK,
        reason: 'tool_denied:issue_refund',
        stopReason: 'tool_denied:issue_refund',
        approvalId: '',
        writ: '',
      });
    }
    expect((await harness.approvals().listApprovals({})).approvals).toEqual([]);
    // A block by the policy keeps its reason.
    const blocked = await agent.propose('op-3', refund(-1));
    expect(blocked.stopReason).toBe('supervisor_block:invalid_refund_amount');
  });

  it.each([
    ['agents', 'allowedAgents', 'refund-worker'],
    ['tenants', 'allowedTenants', 'acme'],
  ] as const)(
    'are blocked, and no approval is opened, when the allowlist of %s denies the tool (SV-1, TG-2)',
    async (_, field, name) => {
      const clock = new ManualClock(new Date());
      harness = await RefundHarness.start({ clock });
      const agent = await harness.agent();
      const list = (version: string, rule: MessageInitShape<typeof AllowRuleSchema>) => {
        const tools = refundTools().map((tool) =>
          tool.name === 'issue_refund' ? { ...tool, [field]: rule } : tool,
        );
        harness.listTools(tools, version);
        clock.advance(3_000);
      };
      // This proposal waits for the listing that the start of the supervisor requested, so that no such request is in
      // flight below.
      await agent.propose('first', refund(-1));
      for (const [index, rule] of [
        { names: ['other'] },
        { names: [name], except: true },
        {},
      ].entries()) {
        list(`denied-${index}`, rule);
        expect(await agent.propose(`denied-${index}`, refund(1200))).toMatchObject({
          verdict: Verdict.BLOCK,
          stopReason: 'tool_denied:issue_refund',
          approvalId: '',
          writ: '',
        });
      }
      expect((await harness.approvals().listApprovals({})).approvals).toEqual([]);
      for (const [index, rule] of [{ names: ['other', name] }, { except: true }].entries()) {
        list(`allowed-${index}`, rule);
        const asked = await agent.propose(`allowed-${index}`, refund(1200));
        expect(asked).toMatchObject({ verdict: Verdict.ESCALATE, stopReason: '' });
      }
    },
  );

  it('determine whether a run with an answer succeeds (SV-7)', async () => {
    const agent = await start();
    expect((await endAfter(agent, -1)).runEnded).toBe(true);
    const run = await harness.ended(agent);
    expect(run).toMatchObject({
      state: RunState.COMPLETED,
      result: { status: RunStatus.PARTIAL, stopReason: 'nothing_done', answer: 'Done.' },
    });
  });

  it('do not change the status of a run in which all of them succeeded (SV-7)', async () => {
    const agent = await start();
    await endAfter(agent, 250, { status: 'ok', refund: { amount_usd: 250 } });
    const { result } = await harness.ended(agent);
    expect(result).toMatchObject({ status: RunStatus.OK, stopReason: 'success' });
    expect(result?.trace.map(({ outcome }) => outcome)).toEqual(['ok', 'ok', '']);
  });

  it('make a run with a refused refund successful only after a successful refund (SV-7)', async () => {
    const agent = await start();
    await agent.propose('op-0', refund(-1));
    await endAfter(agent, 250, { status: 'ok', refund: { amount_usd: 250 } });
    expect((await harness.ended(agent)).result?.stopReason).toBe('success');
    const second = await harness.agent();
    await second.propose('op-0', refund(-1));
    await endAfter(second, 250, REFUSED);
    expect((await harness.ended(second)).result?.stopReason).toBe('nothing_done');
  });

  it('are in the audit record with their business outcome (SV-8)', async () => {
    const agent = await start();
    await endAfter(agent, 250, REFUSED);
    const { result } = await harness.ended(agent);
    expect(result?.trace).toMatchObject([
      { tool: 'get_refund_context', ok: true, outcome: 'ok' },
      { tool: 'issue_refund', ok: true, outcome: 'failed' },
      { tool: 'final', outcome: '' },
    ]);
    const { records } = await harness.supervisor
      .as('anna', AuditService)
      .listAuditRecords({ runId: agent.scope.runId });
    const receipts = records
      .filter(({ kind }) => kind === 'receipt')
      .map(({ canonicalJson }) => JSON.parse(canonicalJson) as JsonObject);
    expect(receipts).toMatchObject([
      { tool: 'get_refund_context', status: 'ok', outcome: 'ok' },
      { tool: 'issue_refund', status: 'ok', outcome: 'failed' },
    ]);
  });

  it('are available to the rules that review the answer (SV-1, SV-3)', async () => {
    const text = policyText.replace(
      '  - id: final\n',
      '  - id: nothing-done\n    match: { kind: final }\n    when: run.effects_refused > 0 && run.effects_done == 0\n    decide: block\n    reason: nothing_was_done\n\n  - id: final\n',
    );
    const agent = await start({ config: { policy: { text, file: 'policy.yaml' } } });
    const blocked = await endAfter(agent, -1);
    expect(blocked.stopReason).toBe('supervisor_block:nothing_was_done');
    const paid = await agent.execute('op-4', refund(100), {
      status: 'ok',
      refund: { amount_usd: 100 },
    });
    expect((await agent.propose('op-5', FINAL, { receipts: [paid] })).runEnded).toBe(true);
    const other = await harness.agent();
    const read = await other.execute('op-1', LOOK_UP, CONTEXT);
    const denied = toolText('get_refund_context', { user_id: 'x' });
    await other.propose('op-2', denied);
    expect((await other.propose('op-3', FINAL, { receipts: [read] })).runEnded).toBe(true);
  });
});

describe('the effects of delegations', () => {
  const POLICY = `
policy: effects
rules:
  - id: no-secrets
    match: { kind: delegation }
    when: action.task.contains("secret")
    decide: block
    reason: no_secrets
  - id: ask-first
    match: { kind: delegation }
    when: action.task.contains("risky")
    decide: escalate
    reason: risky_task
  - id: one-failed
    match: { kind: final }
    when: run.effects_failed > 0
    decide: block
    reason: one_failed
  - id: nothing-done
    match: { kind: final }
    when: run.effects_refused > 0 && run.effects_done == 0
    decide: block
    reason: nothing_was_done
  - id: rest
    decide: approve
    reason: fine
`;
  let family: Family;
  beforeEach(async () => {
    family = await Family.start({ config: { policy: { text: POLICY, file: 'policy.yaml' } } });
  });
  afterEach(() => family.close());

  /** Proposes a delegation that a person must approve. */
  const escalated = (agent: Member, callId: string) =>
    agent.spawn(callId, 'scout', 'Do risky things.');

  /** Proposes a delegation that a person approves; the agent does not repeat it, so that no child is created. */
  const approved = async (agent: Member, callId: string) => {
    const { decision } = await escalated(agent, callId);
    await family.supervisor.as('dora', ApprovalService).decideApproval({
      requestId: `decide-${callId}`,
      approvalId: decision?.approvalId ?? '',
      answer: { case: 'approve', value: {} },
    });
  };

  const UNDONE = [
    ['when they are approved and', approved],
    ['when they await an approval and', escalated],
  ] as const;

  it('are pending in rules from their approval until their child exists (SV-3, SV-5)', async () => {
    const lead = await family.lead();
    await lead.spawn('op-1', 'scout', 'A secret task.');
    await approved(lead, 'op-2');
    expect((await lead.final('op-3')).stopReason).toBe('supervisor_block:nothing_was_done');
    await lead.spawn('op-2', 'scout', 'Do risky things.');
    expect((await lead.final('op-4')).runEnded).toBe(true);
    expect((await family.ended(lead.runId))?.result?.stopReason).toBe('success');
  });

  it('are pending in rules until their child has a slot and a tab and is delivered (SV-3, SUP-9)', async () => {
    const { fakes } = family.supervisor;
    const lead = await family.lead();
    await lead.spawn('op-1', 'scout', 'A secret task.');
    const slot = Promise.withResolvers<void>();
    fakes.fail(SpawnBudgetService.method.acquire, () => slot.promise);
    const spawned = lead.spawn('op-2');
    await fakes.called(SpawnBudgetService.method.acquire);
    const blocked = await lead.final('op-3');
    slot.resolve();
    expect(blocked.stopReason).toBe('supervisor_block:nothing_was_done');
    expect((await spawned).child?.name).toBe('scout');
    expect((await lead.final('op-4')).runEnded).toBe(true);
  });

  it('are done in rules once their child acts, even before its delivery is recorded (SV-3, SUP-9)', async () => {
    const { fakes } = family.supervisor;
    const { deliver } = AgentWorkerService.method;
    const lead = await family.lead();
    await lead.spawn('op-1', 'scout', 'A secret task.');
    const answer = Promise.withResolvers<void>();
    fakes.fail(deliver, () => answer.promise);
    const spawned = lead.spawn('op-2');
    await fakes.called(deliver, 2);
    const scout = family.member(fakes.deliveries.at(-1)?.agent?.instance ?? '');
    const before = await lead.final('op-3');
    await scout.final('op-1');
    const after = await lead.final('op-4');
    answer.resolve();
    expect(before.stopReason).toBe('supervisor_block:nothing_was_done');
    expect(after.runEnded).toBe(true);
    expect((await spawned).child?.instance).toBe(scout.instance);
  });

  it.each(UNDONE)(
    'count as failed in rules %s their agent ends (SV-3, SV-5)',
    async (_when, delegate) => {
      const lead = await family.lead();
      const nested = await lead.child('op-1', 'lead');
      await delegate(nested, 'op-1');
      await lead.end(nested.instance);
      expect((await lead.final('op-2')).stopReason).toBe('supervisor_block:one_failed');
      const { result } = (await family.cancelled(lead.runId)) ?? {};
      expect(result?.trace).toMatchObject([
        { tool: 'handoff_lead', ok: false },
        { tool: 'handoff_scout', ok: false, stopReason: 'cancelled' },
        { tool: 'final' },
      ]);
    },
  );

  it.each(UNDONE)(
    'count as failed in the result %s the run ends (SV-5, SV-7)',
    async (_when, delegate) => {
      await family.close();
      family = await Family.start();
      const lead = await family.lead();
      await lead.spawn('op-1', 'scout', 'A secret task.');
      await delegate(lead, 'op-2');
      expect((await lead.final('op-3')).runEnded).toBe(true);
      expect((await family.ended(lead.runId))?.result).toMatchObject({
        stopReason: 'nothing_done',
        trace: [
          { ok: false, stopReason: 'supervisor_block:no_secrets' },
          { ok: false, stopReason: 'nothing_done' },
          { tool: 'final', ok: true },
        ],
      });
    },
  );

  it('count as refused in rules and in the result when the child gets no slot (SV-3, SV-7)', async () => {
    const { fakes } = family.supervisor;
    const full = { dimension: 'spawns', used: 3, limit: 3, message: 'All slots are held.' };
    fakes.fail(SpawnBudgetService.method.acquire, new BudgetExhaustedError(full));
    const lead = await family.lead();
    expect((await lead.spawn('op-1')).slotRefusal).not.toBe('');
    const blocked = await lead.final('op-2');
    expect(blocked.stopReason).toBe('supervisor_block:nothing_was_done');
    await lead.spawn('op-3');
    expect((await lead.final('op-4')).runEnded).toBe(true);
    expect((await family.ended(lead.runId))?.result?.stopReason).toBe('success');
  });

  it('count as refused in rules and in the result when the child cannot be set up (SV-3, SV-7)', async () => {
    const { fakes } = family.supervisor;
    const lead = await family.lead();
    const closed = new PreconditionError('TAB_CLOSED', 'No more tabs.');
    fakes.fail(ExecutionMeterService.method.openTab, closed);
    await expect(lead.spawn('op-1')).rejects.toMatchObject({ reason: 'SPAWN_FAILED' });
    const blocked = await lead.final('op-2');
    expect(blocked.stopReason).toBe('supervisor_block:nothing_was_done');
  });
});
