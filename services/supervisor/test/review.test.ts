import { ExecutedFrom } from '@writ/contracts/writ/review/v1/action_pb';
import { Verdict } from '@writ/contracts/writ/review/v1/decision_pb';
import { RunState, RunStatus } from '@writ/contracts/writ/run/v1/run_pb';
import { ManualClock } from '@writ/kernel';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { CONTEXT, finalText, LOOK_UP, RefundDesk, refund, toolText } from './refund-desk.ts';
import { refundTools } from './refund-tools.ts';

describe('ReviewAction', () => {
  let desk: RefundDesk;
  beforeAll(async () => {
    desk = await RefundDesk.start();
  });
  afterAll(() => desk.close());

  it('approves by rule and orders exactly the action that was reviewed (SV-1, SV-6, TG-1)', async () => {
    const agent = await desk.agent();
    const decision = await agent.propose('op-1', refund(250));
    expect(decision).toMatchObject({
      verdict: Verdict.APPROVE,
      reason: 'refund_within_auto_limit',
      ruleId: 'refund',
      risk: 0.7,
      step: 1,
      settled: true,
      stopReason: '',
      executedFrom: ExecutedFrom.ORIGINAL,
    });
    const { value } = decision.executedAction?.kind ?? {};
    expect(value).toMatchObject({
      argumentsJson: '{"amount_usd":250,"reason":"Paid twice.","user_id":42}',
    });
    const claims = await desk.order(agent, decision);
    const definition = refundTools().find(({ name }) => name === 'issue_refund');
    expect(claims).toMatchObject({
      decisionId: decision.decisionId,
      definitionDigest: definition?.definitionDigest,
      policyVersion: decision.policyVersion,
      executedFrom: 'original',
      maxToolCalls: 5,
      allowedTools: ['get_refund_context', 'issue_refund', 'send_refund_email'],
      resultFields: ['refund.amount_usd', 'status'],
    });
    await expect(desk.order(agent, { ...decision, callId: 'op-2' })).rejects.toMatchObject({
      reason: 'WRIT_MISMATCH',
    });
  });

  it.each([
    ['read_only_context', LOOK_UP, Verdict.APPROVE],
    ['invalid_refund_amount', refund(0), Verdict.BLOCK],
    ['cap_to_remaining_run_budget', refund(2500), Verdict.ESCALATE],
    ['refund_reason_required', refund(100, null), Verdict.REVISE],
    ['high_refund_requires_human', refund(1200), Verdict.ESCALATE],
    ['refund_within_auto_limit', refund(1000), Verdict.APPROVE],
    [
      'email_before_refund',
      toolText('send_refund_email', { user_id: 42, amount_usd: 5, message: 'Done.' }),
      Verdict.BLOCK,
    ],
    ['final_requires_context', finalText('Done.'), Verdict.BLOCK],
  ])('answers %s (SV-4)', async (reason, proposal, verdict) => {
    const decision = await (await desk.agent()).propose('op-1', proposal);
    expect(decision.verdict).toBe(verdict);
    // A revision that still has to go to a person shows why it does.
    const shown = reason === 'cap_to_remaining_run_budget' ? 'high_refund_requires_human' : reason;
    expect(decision.reason).toBe(shown);
    const stopReason = verdict === Verdict.BLOCK ? `supervisor_block:${reason}` : '';
    expect(decision.stopReason).toBe(stopReason);
    expect(decision.writ === '').toBe(verdict === Verdict.BLOCK || verdict === Verdict.ESCALATE);
  });

  it('runs the rules again on a revision, and takes what they say then (SV-10)', async () => {
    const agent = await desk.agent();
    const filled = await agent.propose('op-1', refund(100, null));
    expect(filled).toMatchObject({
      verdict: Verdict.REVISE,
      executedFrom: ExecutedFrom.SUPERVISOR_REVISED,
    });
    expect(filled.revisedAction).toEqual(filled.executedAction);
    expect(filled.revisedAction).not.toEqual(filled.action);
    await desk.order(agent, filled);
    const capped = await agent.propose('op-2', refund(9000));
    expect(capped).toMatchObject({ verdict: Verdict.ESCALATE, settled: false, writ: '' });
    expect(capped.revisedAction?.kind.value).toMatchObject({
      // 100 of 2,000 are on their way already.
      argumentsJson: '{"amount_usd":1900,"reason":"Paid twice.","user_id":42}',
    });
    expect(capped.executedAction).toBeUndefined();
  });

  it.each([
    ['not_object', '[]'],
    ['non_json', 'Sure! Here you are'],
    ['bad_kind', '{}'],
    ['extra_keys_final', '{"kind":"final","answer":"x","why":1}'],
    ['unknown_tool:wipe', '{"kind":"tool","name":"wipe"}'],
    [
      'extra_tool_args:issue_refund',
      JSON.stringify({
        kind: 'tool',
        name: 'issue_refund',
        args: { user_id: 1, amount_usd: 2, to: 3 },
      }),
    ],
    ['missing_required_arg:issue_refund:user_id', '{"kind":"tool","name":"issue_refund"}'],
    [
      'bad_arg_type:issue_refund:amount_usd',
      JSON.stringify({ kind: 'tool', name: 'issue_refund', args: { user_id: 1, amount_usd: '2' } }),
    ],
  ])('refuses what is no valid action as %s (SV-2)', async (why, text) => {
    const agent = await desk.agent();
    const decision = await agent.propose('op-1', { proposal: { case: 'rawText', value: text } });
    expect(decision).toMatchObject({
      verdict: Verdict.INVALID,
      reason: why,
      stopReason: `invalid_action:${why}`,
      writ: '',
    });
    expect(decision.executedAction).toBeUndefined();
  });

  it('hears no agent without a current slot grant, so a pause holds against any worker (SB-4)', async () => {
    const agent = await desk.agent();
    const { slotGrant: _, ...without } = await agent.options();
    const { slotGrant } = await agent.options(-1);
    const request = { ...LOOK_UP, callId: 'op-1' };
    for (const [options, reason] of [
      [without, 'SLOT_GRANT_REQUIRED'],
      [{ ...without, slotGrant }, 'SLOT_GRANT_EXPIRED'],
    ] as const) {
      const reviewed = agent.reviews.reviewAction(request, options);
      await expect(reviewed).rejects.toMatchObject({ reason });
      const asked = agent.reviews.getDecision({ callId: 'op-1' }, options);
      await expect(asked).rejects.toMatchObject({ reason });
    }
    expect(await agent.propose('op-1', LOOK_UP)).toMatchObject({ verdict: Verdict.APPROVE });
  });

  it('reviews native tool calls the same way (SV-2)', async () => {
    const agent = await desk.agent();
    const native = (tool: string, argumentsJson: string) => ({
      proposal: {
        case: 'action',
        value: { kind: { case: 'tool', value: { tool, argumentsJson } } },
      } as const,
    });
    const good = await agent.propose('op-1', native('get_refund_context', '{"user_id": 42}'));
    expect(good.verdict).toBe(Verdict.APPROVE);
    await desk.order(agent, good);
    const bad = await agent.propose('op-2', native('get_refund_context', '{"user_id": true}'));
    expect(bad.stopReason).toBe('invalid_action:bad_arg_type:get_refund_context:user_id');
  });

  it('answers a repeat with the record and a fresh writ, and refuses a reused call_id', async () => {
    const agent = await desk.agent();
    const first = await agent.propose('op-1', refund(250));
    const again = await agent.propose('op-1', refund(250));
    expect({ ...again, writ: '', writExpireTime: undefined }).toEqual({
      ...first,
      writ: '',
      writExpireTime: undefined,
    });
    expect(again.writ).not.toBe(first.writ);
    await desk.order(agent, again);
    await expect(agent.propose('op-1', refund(251))).rejects.toMatchObject({
      reason: 'CALL_ID_REUSED',
    });
    // A repeat is no step, and counts for nothing more.
    const next = await agent.propose('op-2', refund(1750));
    expect(next).toMatchObject({ step: 2, verdict: Verdict.ESCALATE });
    expect(next.revisedAction).toBeUndefined();
  });

  it('gives a fresh writ also for what was executed: its worker may have lost the answer, and the gateway has it on record (TG-1, RT-1)', async () => {
    const agent = await desk.agent();
    const decision = await agent.propose('op-1', refund(250));
    expect((await agent.decisionNow('op-1'))?.writ).not.toBe('');
    await desk.report(await agent.receipt(decision, { status: 'ok', refund: { amount_usd: 250 } }));
    expect((await agent.decisionNow('op-1'))?.writ).not.toBe('');
    expect((await agent.propose('op-1', refund(250))).writ).not.toBe('');
    await expect(agent.decisionNow('op-9')).rejects.toMatchObject({ reason: 'DECISION_NOT_FOUND' });
  });

  it('refuses an epoch lower than one that it has seen (RT-2)', async () => {
    const agent = await desk.agent();
    agent.epoch = 3n;
    await agent.propose('op-1', refund(250));
    agent.epoch = 2n;
    await expect(agent.propose('op-2', refund(1))).rejects.toMatchObject({ reason: 'STALE_EPOCH' });
    await expect(agent.decisionNow('op-1')).rejects.toMatchObject({ reason: 'STALE_EPOCH' });
  });

  it('counts steps itself, but not one composed final (SV-1)', async () => {
    const agent = await desk.agent('refund-worker-brief');
    for (const step of [1, 2, 3]) {
      expect((await agent.propose(`op-${step}`, refund(0))).step).toBe(step);
    }
    const over = await agent.propose('op-4', LOOK_UP);
    expect(over).toMatchObject({ verdict: Verdict.BLOCK, stopReason: 'max_steps', writ: '' });
    const composed = (answer: string) =>
      ({
        proposal: {
          case: 'action',
          value: { kind: { case: 'final', value: { answer } } },
        },
        composed: true,
      }) as const;
    expect(await agent.propose('op-5', composed('Sorry.'))).toMatchObject({
      step: 0,
      stopReason: 'supervisor_block:final_requires_context',
    });
    expect((await agent.propose('op-6', composed('Sorry!'))).stopReason).toBe('max_steps');
    await expect(agent.propose('op-7', { ...LOOK_UP, composed: true })).rejects.toMatchObject({
      reason: 'FINAL_ACTION_REQUIRED',
      metadata: { field: 'composed' },
    });
    await expect(agent.propose('op-7', { ...LOOK_UP, partial: true })).rejects.toMatchObject({
      reason: 'FINAL_ACTION_REQUIRED',
    });
  });

  it('leaves delegations to SpawnChild (SV-1)', async () => {
    const agent = await desk.agent();
    const value = { kind: { case: 'delegation', value: { agent: 'x', task: 'y' } } } as const;
    await expect(
      agent.propose('op-1', { proposal: { case: 'action', value } }),
    ).rejects.toMatchObject({ reason: 'DELEGATION_REQUIRES_SPAWN' });
  });

  it('ends the run with its approved final, in the same transaction (SV-1, SV-7)', async () => {
    const agent = await desk.agent();
    const receipt = await agent.execute('op-1', LOOK_UP, CONTEXT);
    const content = JSON.stringify(CONTEXT);
    const carried = { receipts: [receipt], observations: [{ callId: 'op-1', content }] };
    const final = await agent.propose('op-2', finalText('  All done. '), carried);
    expect(final).toMatchObject({ verdict: Verdict.APPROVE, runEnded: true, writ: '' });
    await expect(agent.propose('op-3', LOOK_UP)).rejects.toMatchObject({
      reason: 'RUN_ENDED',
      metadata: { stop_reason: 'success' },
    });
    await expect(agent.decisionNow('op-1')).rejects.toMatchObject({ reason: 'RUN_ENDED' });
    // The answer to a final may be lost; what it said stays.
    expect(await agent.propose('op-2', finalText('  All done. '))).toEqual(final);
    const run = await desk.ended(agent);
    expect(run).toMatchObject({
      state: RunState.COMPLETED,
      result: { status: RunStatus.OK, stopReason: 'success', answer: 'All done.' },
    });
    expect(run.result?.history.map((entry) => entry.observationJson)).toEqual([
      content,
      '{"status":"final"}',
    ]);
  });

  it('ends the run as paused with a partial final (SB-4)', async () => {
    const agent = await desk.agent();
    const receipt = await agent.execute('op-1', LOOK_UP, CONTEXT);
    const value = { kind: { case: 'final', value: { answer: 'So far.' } } } as const;
    const partial = { proposal: { case: 'action', value }, partial: true } as const;
    expect((await agent.propose('op-2', partial, { receipts: [receipt] })).runEnded).toBe(true);
    expect(await desk.ended(agent)).toMatchObject({
      state: RunState.PAUSED,
      result: { status: RunStatus.PARTIAL, stopReason: 'paused', answer: 'So far.' },
    });
  });

  it('reviews nothing for a run that was cancelled (SUP-8)', async () => {
    const agent = await desk.agent();
    const { runId } = agent.scope;
    await desk.supervisor.runs().cancelRun({ requestId: 'c-1', runId });
    await expect(agent.propose('op-1', LOOK_UP)).rejects.toMatchObject({
      reason: 'RUN_ENDED',
      metadata: { stop_reason: 'cancelled' },
    });
  });
});

describe('ReviewAction in time', () => {
  const clock = new ManualClock(new Date());
  let desk: RefundDesk;
  beforeEach(async () => {
    desk = await RefundDesk.start({ clock, config: { sweepMs: 60_000 } });
  });
  afterEach(() => desk.close());

  it('approves nothing while the gateway never said what its tools are (SYS-4)', async () => {
    desk.gatewayIsAway();
    const agent = await desk.agent();
    await expect(agent.propose('op-1', LOOK_UP)).rejects.toMatchObject({
      reason: 'TOOL_LIST_UNAVAILABLE',
      kind: 'unavailable',
    });
    desk.listTools();
    // Nothing was recorded, not even the step.
    expect(await agent.propose('op-1', LOOK_UP)).toMatchObject({ step: 1, settled: true });
  });

  it('uses what the gateway said before while it is away, and sees a changed registry', async () => {
    const agent = await desk.agent();
    await agent.propose('op-1', LOOK_UP);
    desk.gatewayIsAway();
    clock.advance(3_000);
    expect((await agent.propose('op-2', LOOK_UP)).verdict).toBe(Verdict.APPROVE);
    desk.listTools(
      refundTools().map((tool) => ({ ...tool, definitionDigest: 'changed' })),
      'v2',
    );
    clock.advance(3_000);
    const claims = await desk.order(agent, await agent.propose('op-3', refund(1)));
    expect(claims.definitionDigest).toBe('changed');
  });

  it('stops an agent that was active for too long (EM-1)', async () => {
    const agent = await desk.agent();
    await agent.propose('op-1', LOOK_UP);
    clock.advance(30_001);
    expect(await agent.propose('op-2', LOOK_UP)).toMatchObject({
      verdict: Verdict.BLOCK,
      stopReason: 'max_seconds',
      writ: '',
    });
  });

  it('does not count the time that a person takes (EM-1, SV-5)', async () => {
    const agent = await desk.agent();
    await agent.propose('op-1', refund(1200));
    clock.advance(600_000);
    const now = await agent.propose('op-2', LOOK_UP);
    expect(now.verdict).toBe(Verdict.APPROVE);
  });
});
