import { AuditService } from '@writ/contracts/writ/audit/v1/audit_service_pb';
import { CallStatus } from '@writ/contracts/writ/identity/v1/claims_pb';
import { SpawnBudgetService } from '@writ/contracts/writ/spawn/v1/spawn_budget_service_pb';
import { BudgetExhaustedError, ManualClock, sha256Hex } from '@writ/kernel';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Family } from './family.ts';
import { type DeskAgent, RefundDesk, refund } from './refund-desk.ts';
import type { SupervisorUnderTest } from './supervisor-under-test.ts';

type Facts = Readonly<Record<string, unknown>>;

/** What is on record of a run, as `kind call: what`. */
async function recordOf(supervisor: SupervisorUnderTest, runId: string): Promise<Facts[]> {
  const { records } = await supervisor.as('anna', AuditService).listAuditRecords({ runId });
  return records.map(({ canonicalJson }) => JSON.parse(canonicalJson) as Facts);
}

function told(facts: readonly Facts[]): string[] {
  return facts.map(({ kind, call_id, verdict, state, status, stop_reason, reason }) =>
    [kind, call_id, verdict ?? state ?? status ?? stop_reason ?? reason].filter(Boolean).join(' '),
  );
}

describe('on record as soon as it is true', () => {
  const clock = new ManualClock(new Date(Date.now() - 3_600_000));
  let desk: RefundDesk;
  beforeAll(async () => {
    desk = await RefundDesk.start({ clock, config: { approvalTtlMs: 60_000 } });
  });
  afterAll(() => desk.close());

  const record = ({ scope: { runId } }: DeskAgent) => recordOf(desk.supervisor, runId);
  const cancel = async ({ scope: { runId } }: DeskAgent, reason = '') => {
    await desk.supervisor.runs().cancelRun({ requestId: `c-${runId}`, runId, reason });
  };

  it('is a cancel, by whom and for what, and the question that it takes back (SV-8, SUP-8)', async () => {
    const agent = await desk.agent();
    await agent.propose('op-1', refund(1200));
    await cancel(agent, 'Not needed any more.');
    await desk.ended(agent);
    const facts = await record(agent);
    expect(told(facts)).toEqual([
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

  it('is every writ that is signed anew, a refusal, and a receipt that amends another (SV-8)', async () => {
    const agent = await desk.agent();
    const decision = await agent.propose('op-1', refund(250));
    await agent.decisionNow('op-1');
    await agent.propose('op-1', refund(250));
    const unfit = await agent.receipt(decision, {}, { callId: 'op-9' });
    await desk.report(unfit);
    await desk.report(unfit);
    const unknown = { status: CallStatus.UNKNOWN, stopReason: 'outcome_unknown:issue_refund' };
    await desk.report(await agent.receipt(decision, {}, unknown));
    const amended = { revision: 2, resolvedBy: 'dora' };
    await desk.report(await agent.receipt(decision, { status: 'ok' }, amended));
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
      // Goes to the worker with the word that wakes it: it opens the gateway's record.
      'writ op-1',
    ];
    await expect.poll(async () => told(await record(agent))).toEqual(expected);
    const facts = await record(agent);
    const writs = facts.flatMap(({ writ_id }, index) => (index < 4 && writ_id ? [writ_id] : []));
    expect(new Set(writs).size).toBe(3);
    expect(facts[2]).toMatchObject({ writ_number: 2, policy_version: facts[1]?.policy_version });
    expect(facts[8]).toMatchObject({ asked: 'resolve', approver: 'dora' });
    await cancel(agent);
  });

  it('is the silence of those who were asked (SV-5, SV-8)', async () => {
    const agent = await desk.agent();
    await agent.propose('op-1', refund(1200));
    clock.advance(60_000);
    await expect
      .poll(async () => told(await record(agent)).at(-1), { interval: 5 })
      .toBe('approval op-1 expired');
    await cancel(agent);
  });

  it('is a child, one that found no slot, and how each ended (SV-8, SB-2)', async () => {
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
      const facts = await recordOf(family.supervisor, lead.runId);
      const [, , refused, , started] = facts;
      expect(told(facts)).toEqual([
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
