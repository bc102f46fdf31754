import { AuditService } from '@writ/contracts/writ/audit/v1/audit_service_pb';
import { CallStatus } from '@writ/contracts/writ/identity/v1/claims_pb';
import { SpawnBudgetService } from '@writ/contracts/writ/spawn/v1/spawn_budget_service_pb';
import { BudgetExhaustedError, ManualClock, sha256Hex } from '@writ/kernel';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Family } from './family.ts';
import { RefundHarness, refund, type TestAgent } from './refund-harness.ts';
import type { SupervisorUnderTest } from './supervisor-under-test.ts';

type Facts = Readonly<Record<string, unknown>>;

/** The audit records of a run. */
async function auditRecordsOf(supervisor: SupervisorUnderTest, runId: string): Promise<Facts[]> {
  const { records } = await supervisor.as('anna', AuditService).listAuditRecords({ runId });
  return records.map(({ canonicalJson }) => JSON.parse(canonicalJson) as Facts);
}

function summaryOf(facts: readonly Facts[]): string[] {
  return facts.map(({ kind, call_id, verdict, state, status, stop_reason, reason }) =>
    [kind, call_id, verdict ?? state ?? status ?? stop_reason ?? reason].filter(Boolean).join(' '),
  );
}

describe('the audit log', () => {
  const clock = new ManualClock(new Date(Date.now() - 3_600_000));
  let harness: RefundHarness;
  beforeAll(async () => {
    harness = await RefundHarness.start({ clock, config: { approvalTtlMs: 60_000 } });
  });
  afterAll(() => harness.close());

  const recordsOf = ({ scope: { runId } }: TestAgent) => auditRecordsOf(harness.supervisor, runId);
  const cancel = async ({ scope: { runId } }: TestAgent, reason = '') => {
    await harness.supervisor.runs().cancelRun({ requestId: `c-${runId}`, runId, reason });
  };

  it('records a cancellation with its author and reason, and the withdrawn approval (SV-8, SUP-8)', async () => {
    const agent = await harness.agent();
    await agent.propose('op-1', refund(1200));
    await cancel(agent, 'Not needed any more.');
    await harness.ended(agent);
    const facts = await recordsOf(agent);
    expect(summaryOf(facts)).toEqual([
      'run_started',
      'decision op-1 escalate',
      'approval op-1 pending',
      'agent_ended cancelled',
      'approval op-1 withdrawn',
      'run_ended cancelled',
    ]);
    expect(facts[3]).toMatchObject({
      ordered_by: 'anna',
      reason_sha256: sha256Hex('Not needed any more.'),
    });
  });

  it('rejects an unknown kind, and names the valid kinds (SV-8, SYS-3)', async () => {
    const audit = harness.supervisor.as('anna', AuditService);
    await expect(audit.listAuditRecords({ kind: 'approvals' })).rejects.toMatchObject({
      reason: 'INVALID_FIELD',
      message: expect.stringMatching(/^kind: "approvals" is not .* run_started, .* approval, /),
      metadata: { field: 'kind' },
    });
  });

  it('records every signed writ, a refusal, and a receipt that amends another (SV-8)', async () => {
    const agent = await harness.agent();
    const decision = await agent.propose('op-1', refund(250));
    await agent.getDecision('op-1');
    await agent.propose('op-1', refund(250));
    const mismatched = await agent.receipt(decision, {}, { callId: 'op-9' });
    await harness.report(mismatched);
    await harness.report(mismatched);
    const unknown = { status: CallStatus.UNKNOWN, stopReason: 'outcome_unknown:issue_refund' };
    await harness.report(await agent.receipt(decision, {}, unknown));
    const amended = { revision: 2, resolvedBy: 'dora' };
    await harness.report(await agent.receipt(decision, { status: 'ok' }, amended));
    const expected = [
      'run_started',
      'decision op-1 approve',
      'writ op-1',
      'writ op-1',
      'refusal op-9 ok',
      'receipt op-1 unknown',
      'approval op-1 pending',
      'receipt op-1 ok',
      'approval op-1 resolved',
      // The signal that wakes the worker contains a new writ, which the worker uses to read the recorded outcome from
      // the gateway.
      'writ op-1',
    ];
    await expect.poll(async () => summaryOf(await recordsOf(agent))).toEqual(expected);
    const facts = await recordsOf(agent);
    const writs = facts.flatMap(({ writ_id }, index) => (index < 4 && writ_id ? [writ_id] : []));
    expect(new Set(writs).size).toBe(3);
    expect(facts[2]).toMatchObject({ writ_number: 2, policy_version: facts[1]?.policy_version });
    expect(facts[8]).toMatchObject({ asked: 'resolve', approver: 'dora' });
    await cancel(agent);
  });

  it('records an expired approval (SV-5, SV-8)', async () => {
    const agent = await harness.agent();
    await agent.propose('op-1', refund(1200));
    clock.advance(60_000);
    await expect
      .poll(async () => summaryOf(await recordsOf(agent)).at(-1), { interval: 5 })
      .toBe('approval op-1 expired');
    await cancel(agent);
  });

  it('records the start and end of a child, and a child that was refused a slot (SV-8, SB-2)', async () => {
    const family = await Family.start();
    try {
      const lead = await family.lead();
      const full = { dimension: 'spawns', used: 3, limit: 3, message: 'No slot.' };
      family.supervisor.fakes.fail(
        SpawnBudgetService.method.acquire,
        new BudgetExhaustedError(full),
      );
      await lead.spawn('op-1');
      const scout = await lead.child('op-2');
      await lead.end(scout.instance);
      const digger = await lead.child('op-3', 'digger');
      await family.cancelled(lead.runId);
      const facts = await auditRecordsOf(family.supervisor, lead.runId);
      const [, , refused, , started] = facts;
      expect(summaryOf(facts)).toEqual([
        'run_started',
        'decision op-1 approve',
        'agent_refused SLOT_DENIED',
        'decision op-2 approve',
        'agent_started',
        'agent_ended cancelled',
        'decision op-3 approve',
        'agent_started',
        'agent_ended cancelled',
        'agent_ended cancelled',
        'run_ended cancelled',
      ]);
      expect(refused).toMatchObject({ parent: lead.instance, parent_call_id: 'op-1' });
      expect(started).toMatchObject({ agent_instance: scout.instance, parent_call_id: 'op-2' });
      const ended = facts.slice(8, 10).map(({ agent_instance }) => agent_instance);
      expect(ended).toEqual([lead.instance, digger.instance]);
    } finally {
      await family.close();
    }
  });
});
