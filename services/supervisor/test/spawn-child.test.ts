import { ApprovalService } from '@writ/contracts/writ/approval/v1/approval_service_pb';
import { HookEventType } from '@writ/contracts/writ/hook/v1/hook_event_pb';
import { ExecutionMeterService } from '@writ/contracts/writ/meter/v1/execution_meter_service_pb';
import { Verdict } from '@writ/contracts/writ/review/v1/decision_pb';
import { SpawnBudgetService } from '@writ/contracts/writ/spawn/v1/spawn_budget_service_pb';
import { HistoryRetention, Priority } from '@writ/contracts/writ/supervision/v1/supervision_pb';
import { AgentWorkerService } from '@writ/contracts/writ/worker/v1/agent_worker_service_pb';
import { BudgetExhaustedError, PreconditionError } from '@writ/kernel';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { Family } from './family.ts';

const { acquire } = SpawnBudgetService.method;
const { openTab } = ExecutionMeterService.method;
const { deliver } = AgentWorkerService.method;

describe('SpawnChild', () => {
  let family: Family;
  beforeAll(async () => {
    family = await Family.start();
  });
  afterAll(() => family.close());
  const requestsFor = <T extends { readonly runId?: string }>(all: T[], runId: string) =>
    all.filter((request) => request.runId === runId);

  it('reviews the delegation, then acquires slot, tab and tokens and delivers the task (SV-1, SUP-9)', async () => {
    const lead = await family.lead();
    const answer = await lead.spawn('op-1', 'scout', ' Look it up. ', { correlationId: 'msg-1' });
    expect(answer.decision).toMatchObject({
      verdict: Verdict.APPROVE,
      reason: 'may_hand_over',
      step: 1,
      writ: '',
      stopReason: '',
      runEnded: false,
      settled: true,
    });
    const { fakes } = family.supervisor;
    const [slot] = requestsFor(fakes.requests(acquire), lead.runId);
    const [, tab] = requestsFor(fakes.requests(openTab), lead.runId);
    const delivered = fakes.deliveries.at(-1);
    const parent = { name: 'lead', instance: lead.instance };
    const { child } = answer;
    expect(child?.instance).toMatch(/^scout-[0-9a-z]{12}$/);
    expect(slot).toMatchObject({ agent: child, parent, depth: 1, priority: Priority.LOW });
    expect(tab).toMatchObject({ agent: child, parent, models: ['small', 'large'] });
    expect(tab?.runBudget).toBeUndefined();
    expect(delivered).toMatchObject({
      agent: child,
      slotGrant: `grant-of-${child?.instance}`,
      message: {
        text: 'Look it up.',
        senderInstance: lead.instance,
        replyTo: lead.instance,
        correlationId: 'msg-1',
      },
    });
    expect(delivered?.supervision).toEqual(answer.supervision);
    // The tokens are valid: the child can propose actions.
    const scout = family.member(child?.instance ?? '');
    expect((await scout.final('op-1')).runEnded).toBe(true);
    await family.cancelled(lead.runId);
  });

  it('limits the child to the minimum of parent, manifest and request (SUP-9, SUP-1)', async () => {
    const lead = await family.lead();
    const { supervision } = await lead.spawn('op-1', 'scout', 'Look.', {
      executionBudget: { maxTokens: 900n, maxTurns: 3n },
      priority: Priority.CRITICAL,
      models: ['sim-tiny'],
      tools: ['look'],
      retention: HistoryRetention.PERMANENT,
    });
    expect(supervision).toMatchObject({
      depth: 1,
      priority: Priority.LOW,
      retention: HistoryRetention.PERMANENT,
      executionBudget: { maxTokens: 900n, maxCostNanoUsd: 2_000_000_000n, maxTurns: 3n },
    });
    expect(supervision?.executionBudget?.deadline?.seconds).toBe(300n);
    const { manifest } = family.supervisor.fakes.deliveries.at(-1) ?? {};
    expect(manifest).toMatchObject({
      tools: ['look'],
      model: { model: 'sim-tiny', alsoAllowed: [] },
      limits: { maxToolCalls: 9 },
    });
    const second = await lead.spawn('op-2', 'digger');
    expect(second.supervision).toMatchObject({
      priority: Priority.HIGH,
      retention: HistoryRetention.RUN,
    });
    await family.cancelled(lead.runId);
  });

  it.each([
    ['a tool', { tools: ['look', 'wipe'] }, 'TOOL_NOT_ALLOWED', 'tools'],
    ['a model', { models: ['huge'] }, 'MODEL_NOT_ALLOWED', 'models'],
    [
      'a budget',
      { executionBudget: { maxTokens: 1001n } },
      'BUDGET_ABOVE_PARENT',
      'execution_budget.max_tokens',
    ],
  ])(
    'rejects %s beyond manifest or parent without counting a step (SUP-9)',
    async (_what, terms, reason, field) => {
      const lead = await family.lead();
      await expect(lead.spawn('op-1', 'scout', 'risky', terms)).rejects.toMatchObject({
        reason,
        metadata: { field },
      });
      expect((await lead.spawn('op-1', 'scout')).decision?.step).toBe(1);
      await family.cancelled(lead.runId);
    },
  );

  it.each([
    ['an agent outside its manifest', 'outsider', 'x', 'unknown_tool:handoff_outsider'],
    ['an unknown agent', 'ghost', 'x', 'unknown_tool:handoff_ghost'],
    ['an empty task', 'scout', '  ', 'missing_required_arg:handoff_scout:task'],
  ])(
    'records a delegation to %s as an invalid action (SUP-9, SV-2)',
    async (_what, agent, task, why) => {
      const lead = await family.lead();
      const answer = await lead.spawn('op-1', agent, task);
      expect(answer.decision).toMatchObject({
        verdict: Verdict.INVALID,
        stopReason: `invalid_action:${why}`,
        step: 1,
      });
      expect(answer.child).toBeUndefined();
      expect(requestsFor(family.supervisor.fakes.requests(acquire), lead.runId)).toEqual([]);
      await family.cancelled(lead.runId);
    },
  );

  it('acquires no slot for a delegation that the policy blocks (SV-1)', async () => {
    const lead = await family.lead();
    const answer = await lead.spawn('op-1', 'scout', 'Tell the secret.');
    expect(answer.decision?.stopReason).toBe('supervisor_block:no_secrets');
    expect(answer.child).toBeUndefined();
    expect(requestsFor(family.supervisor.fakes.requests(acquire), lead.runId)).toEqual([]);
    await family.cancelled(lead.runId);
  });

  it('escalates a delegation, and spawns the child on a retry after the approval (SV-5)', async () => {
    const lead = await family.lead();
    const escalated = await lead.spawn('op-1', 'scout', 'Do risky things.');
    expect(escalated.decision).toMatchObject({ verdict: Verdict.ESCALATE, settled: false });
    expect(escalated.child).toBeUndefined();
    const approvals = family.supervisor.as('dora', ApprovalService);
    const approvalId = escalated.decision?.approvalId ?? '';
    const { approval } = await approvals.decideApproval({
      requestId: 'd-1',
      approvalId,
      answer: { case: 'approve', value: {} },
    });
    expect(approval?.executedAction?.kind.case).toBe('delegation');
    const { fakes } = family.supervisor;
    await fakes.called(AgentWorkerService.method.signal);
    expect(requestsFor(fakes.requests(acquire), lead.runId)).toEqual([]);
    const answer = await lead.spawn('op-1', 'scout', 'Do risky things.');
    expect(answer.decision).toMatchObject({ settled: true, humanApproval: { approved: true } });
    expect(answer.child?.name).toBe('scout');
    await family.cancelled(lead.runId);
  });

  it('returns the error message of the cap when the slot is refused, without a child (SB-2, AG-3)', async () => {
    const lead = await family.lead();
    const message = 'Spawn budget exceeded: all 3 slots of the run (max_agents) are held.';
    const full = { dimension: 'spawns', used: 3, limit: 3, message };
    family.supervisor.fakes.fail(acquire, new BudgetExhaustedError(full));
    const answer = await lead.spawn('op-1');
    expect(answer).toMatchObject({ slotRefusal: message, decision: { stopReason: '' } });
    expect(answer.child).toBeUndefined();
    // A retry gets the same refusal; another call may get a slot.
    expect((await lead.spawn('op-1')).slotRefusal).toBe(message);
    expect((await lead.spawn('op-2')).child?.name).toBe('scout');
    expect(requestsFor(family.supervisor.fakes.requests(acquire), lead.runId)).toHaveLength(2);
    const run = await family.cancelled(lead.runId);
    expect(run?.result?.trace).toMatchObject([
      { tool: 'handoff_scout', ok: false, stopReason: 'budget_exhausted:spawns' },
      { tool: 'handoff_scout', ok: false, stopReason: 'cancelled' },
    ]);
  });

  it('answers a retry with the same child, and rejects a reused call_id', async () => {
    const lead = await family.lead();
    const [first, second] = await Promise.all([lead.spawn('op-1'), lead.spawn('op-1')]);
    expect(second).toEqual(first);
    expect(await lead.spawn('op-1')).toEqual(first);
    await expect(lead.spawn('op-1', 'digger')).rejects.toMatchObject({ reason: 'CALL_ID_REUSED' });
    await expect(
      lead.spawn('op-1', 'scout', 'Look it up.', { priority: Priority.LOW }),
    ).rejects.toMatchObject({ reason: 'CALL_ID_REUSED' });
    expect(requestsFor(family.supervisor.fakes.requests(acquire), lead.runId)).toHaveLength(1);
    // Two children of one manifest have different instance names.
    const other = await lead.spawn('op-2');
    expect(other.child?.instance).not.toBe(first.child?.instance);
    expect(other.decision?.step).toBe(2);
    await family.cancelled(lead.runId);
  });

  it('records the child’s reviewed answer in the history of the run (SV-7, AG-3)', async () => {
    const lead = await family.lead();
    const scout = await lead.child('op-1');
    await scout.final('op-1', 'Seen.');
    await lead.end(scout.instance);
    await lead.final('op-2', 'All done.');
    const { result } = (await family.ended(lead.runId)) ?? {};
    expect(result).toMatchObject({ stopReason: 'success', answer: 'All done.' });
    expect(result?.history.map(({ observationJson }) => observationJson)).toEqual([
      `{"status":"replied","agent":"${scout.instance}","answer":"Seen."}`,
      '{"status":"final"}',
      '{"status":"final"}',
    ]);
  });

  it('publishes the handoff once, before any event of the child (HK-1)', async () => {
    const lead = await family.lead();
    const scout = await lead.child('op-1');
    await scout.final('op-1');
    await family.cancelled(lead.runId);
    const events = await Array.fromAsync(family.supervisor.runs().watchRun({ runId: lead.runId }));
    const hooks = events.flatMap(({ event }) =>
      event?.entry.case === 'hook' ? [event.entry.value] : [],
    );
    const handoffs = hooks.filter(({ type }) => type === HookEventType.HANDOFF);
    expect(handoffs).toMatchObject([
      {
        agent: { instance: lead.instance },
        otherAgent: { instance: scout.instance },
        callId: 'op-1',
        step: 1,
        emitter: 'supervisor',
      },
    ]);
    const entries = events.map(({ event }) => [event?.entry.case, event?.agent?.instance]);
    const handoff = events.findIndex(
      ({ event }) =>
        event?.entry.case === 'hook' && event.entry.value.type === HookEventType.HANDOFF,
    );
    const firstOfChild = entries.findIndex(([, instance]) => instance === scout.instance);
    expect(handoff).toBeLessThan(firstOfChild);
  });

  it('releases everything when a later step fails permanently, and reports the cause (SUP-8)', async () => {
    const lead = await family.lead();
    const { fakes } = family.supervisor;
    fakes.fail(openTab, new PreconditionError('TAB_CLOSED', 'No more tabs.'));
    const failed = { reason: 'SPAWN_FAILED', metadata: { cause: 'TAB_CLOSED' } };
    await expect(lead.spawn('op-1')).rejects.toMatchObject(failed);
    await expect(lead.spawn('op-1')).rejects.toMatchObject(failed);
    const [acquired] = requestsFor(fakes.requests(acquire), lead.runId);
    const { release } = SpawnBudgetService.method;
    await expect
      .poll(() => requestsFor(fakes.requests(release), lead.runId), { interval: 5 })
      .toMatchObject([{ agentInstance: acquired?.agent?.instance }]);
    expect(fakes.requests(deliver).at(-1)?.agent?.name).toBe('lead');
    await family.cancelled(lead.runId);
  });

  it('tells a live child that its run is ending, not that it has ended (RT-4, SYS-3)', async () => {
    const lead = await family.lead();
    const scout = await lead.child('op-1');
    const { fakes } = family.supervisor;
    const { promise, resolve } = Promise.withResolvers<void>();
    fakes.fail(ExecutionMeterService.method.freeze, () => promise);
    const { runId } = lead;
    await family.supervisor.runs().cancelRun({ requestId: 'c-ending', runId });
    await expect(scout.final('op-1')).rejects.toMatchObject({
      reason: 'RUN_ENDED',
      message: `Run ${runId} is ending with cancelled, so agent ${scout.instance} can no longer act.`,
      metadata: { agent: scout.instance, stop_reason: 'cancelled' },
    });
    resolve();
    await family.ended(runId);
  });

  it('spawns nothing for a run or a parent that has ended (SUP-8, RT-4)', async () => {
    const lead = await family.lead();
    const nested = await lead.child('op-1', 'lead');
    await nested.final('op-1');
    await expect(nested.spawn('op-2')).rejects.toMatchObject({ reason: 'RUN_ENDED' });
    await family.cancelled(lead.runId);
    await expect(lead.spawn('op-2')).rejects.toMatchObject({ reason: 'RUN_ENDED' });
  });

  it('returns SPAWN_PENDING when it takes too long, and a retry returns the child (SUP-9)', async () => {
    const slow = await Family.start({ config: { childWaitMs: 30 } });
    try {
      const lead = await slow.lead();
      const { promise, resolve } = Promise.withResolvers<void>();
      slow.supervisor.fakes.fail(openTab, () => promise);
      await expect(lead.spawn('op-1')).rejects.toMatchObject({
        kind: 'unavailable',
        reason: 'SPAWN_PENDING',
      });
      resolve();
      await slow.supervisor.fakes.called(deliver, 2);
      // The order may still be in progress, and each retry waits no longer than the first call.
      const { child } = await vi.waitFor(() => lead.spawn('op-1'));
      expect(child?.name).toBe('scout');
      expect(slow.supervisor.fakes.requests(acquire)).toHaveLength(1);
    } finally {
      await slow.close();
    }
  });
});
