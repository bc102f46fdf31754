import { ExecutedFrom } from '@writ/contracts/writ/review/v1/action_pb';
import { Verdict } from '@writ/contracts/writ/review/v1/decision_pb';
import { RunState, RunStatus } from '@writ/contracts/writ/run/v1/run_pb';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CONTEXT, finalText, LOOK_UP, RefundHarness, refund, toolText } from './refund-harness.ts';
import { refundTools } from './refund-tools.ts';

describe('ReviewAction', () => {
  let harness: RefundHarness;
  beforeAll(async () => {
    harness = await RefundHarness.start();
  });
  afterAll(() => harness.close());

  it('approves by rule and issues a writ for exactly the reviewed action (SV-1, SV-6, TG-1)', async () => {
    const agent = await harness.agent();
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
    const claims = await harness.writClaims(agent, decision);
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
    await expect(harness.writClaims(agent, { ...decision, callId: 'op-2' })).rejects.toMatchObject({
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
    const decision = await (await harness.agent()).propose('op-1', proposal);
    expect(decision.verdict).toBe(verdict);
    // A revision that is still escalated reports the reason of the escalation.
    const expected =
      reason === 'cap_to_remaining_run_budget' ? 'high_refund_requires_human' : reason;
    expect(decision.reason).toBe(expected);
    const stopReason = verdict === Verdict.BLOCK ? `supervisor_block:${reason}` : '';
    expect(decision.stopReason).toBe(stopReason);
    expect(decision.writ === '').toBe(verdict === Verdict.BLOCK || verdict === Verdict.ESCALATE);
  });

  it('reviews a revision again and applies the second result (SV-10)', async () => {
    const agent = await harness.agent();
    const filled = await agent.propose('op-1', refund(100, null));
    expect(filled).toMatchObject({
      verdict: Verdict.REVISE,
      executedFrom: ExecutedFrom.SUPERVISOR_REVISED,
    });
    expect(filled.revisedAction).toEqual(filled.executedAction);
    expect(filled.revisedAction).not.toEqual(filled.action);
    await harness.writClaims(agent, filled);
    const capped = await agent.propose('op-2', refund(9000));
    expect(capped).toMatchObject({ verdict: Verdict.ESCALATE, settled: false, writ: '' });
    expect(capped.revisedAction?.kind.value).toMatchObject({
      // 100 of the 2,000 are already approved.
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
  ])('rejects an invalid action as %s (SV-2)', async (why, text) => {
    const agent = await harness.agent();
    const decision = await agent.propose('op-1', { proposal: { case: 'rawText', value: text } });
    expect(decision).toMatchObject({
      verdict: Verdict.INVALID,
      reason: why,
      stopReason: `invalid_action:${why}`,
      writ: '',
    });
    expect(decision.executedAction).toBeUndefined();
  });

  it('rejects an agent without a current slot grant, so that a pause applies to any worker (SB-4)', async () => {
    const agent = await harness.agent();
    const { slotGrant: _, ...without } = await agent.options();
    const { slotGrant } = await agent.options(-1);
    const request = { ...LOOK_UP, callId: 'op-1' };
    for (const [options, reason] of [
      [without, 'SLOT_GRANT_REQUIRED'],
      [{ ...without, slotGrant }, 'SLOT_GRANT_EXPIRED'],
    ] as const) {
      const reviewed = agent.reviews.reviewAction(request, options);
      await expect(reviewed).rejects.toMatchObject({ reason });
      const read = agent.reviews.getDecision({ callId: 'op-1' }, options);
      await expect(read).rejects.toMatchObject({ reason });
    }
    expect(await agent.propose('op-1', LOOK_UP)).toMatchObject({ verdict: Verdict.APPROVE });
  });

  it('reviews native tool calls like text actions (SV-2)', async () => {
    const agent = await harness.agent();
    const native = (tool: string, argumentsJson: string) => ({
      proposal: {
        case: 'action',
        value: { kind: { case: 'tool', value: { tool, argumentsJson } } },
      } as const,
    });
    const good = await agent.propose('op-1', native('get_refund_context', '{"user_id": 42}'));
    expect(good.verdict).toBe(Verdict.APPROVE);
    await harness.writClaims(agent, good);
    const bad = await agent.propose('op-2', native('get_refund_context', '{"user_id": true}'));
    expect(bad.stopReason).toBe('invalid_action:bad_arg_type:get_refund_context:user_id');
  });

  it('answers a retry with the recorded decision and a new writ, and rejects a reused call_id', async () => {
    const agent = await harness.agent();
    const first = await agent.propose('op-1', refund(250));
    const retried = await agent.propose('op-1', refund(250));
    expect({ ...retried, writ: '', writExpireTime: undefined }).toEqual({
      ...first,
      writ: '',
      writExpireTime: undefined,
    });
    expect(retried.writ).not.toBe(first.writ);
    await harness.writClaims(agent, retried);
    await expect(agent.propose('op-1', refund(251))).rejects.toMatchObject({
      reason: 'CALL_ID_REUSED',
    });
    // A retry is not a step and does not count toward limits.
    const next = await agent.propose('op-2', refund(1750));
    expect(next).toMatchObject({ step: 2, verdict: Verdict.ESCALATE });
    expect(next.revisedAction).toBeUndefined();
  });

  it('issues a new writ also for an executed call, so that a worker can read the recorded outcome (TG-1, RT-1)', async () => {
    const agent = await harness.agent();
    const decision = await agent.propose('op-1', refund(250));
    expect((await agent.getDecision('op-1'))?.writ).not.toBe('');
    await harness.report(
      await agent.receipt(decision, { status: 'ok', refund: { amount_usd: 250 } }),
    );
    expect((await agent.getDecision('op-1'))?.writ).not.toBe('');
    expect((await agent.propose('op-1', refund(250))).writ).not.toBe('');
    await expect(agent.getDecision('op-9')).rejects.toMatchObject({ reason: 'DECISION_NOT_FOUND' });
  });

  it('rejects an epoch lower than the highest one it has seen (RT-2)', async () => {
    const agent = await harness.agent();
    agent.epoch = 3n;
    await agent.propose('op-1', refund(250));
    agent.epoch = 2n;
    await expect(agent.propose('op-2', refund(1))).rejects.toMatchObject({ reason: 'STALE_EPOCH' });
    await expect(agent.getDecision('op-1')).rejects.toMatchObject({ reason: 'STALE_EPOCH' });
  });

  it('counts steps itself, except one composed final (SV-1)', async () => {
    const agent = await harness.agent('refund-worker-brief');
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

  it('rejects a delegation, and names SpawnChild (SV-1)', async () => {
    const agent = await harness.agent();
    const value = { kind: { case: 'delegation', value: { agent: 'x', task: 'y' } } } as const;
    await expect(
      agent.propose('op-1', { proposal: { case: 'action', value } }),
    ).rejects.toMatchObject({ reason: 'DELEGATION_REQUIRES_SPAWN' });
  });

  it('ends the run with its approved final in the same transaction (SV-1, SV-7)', async () => {
    const agent = await harness.agent();
    const receipt = await agent.execute('op-1', LOOK_UP, CONTEXT);
    const content = JSON.stringify(CONTEXT);
    const evidence = { receipts: [receipt], observations: [{ callId: 'op-1', content }] };
    const final = await agent.propose('op-2', finalText('  All done. '), evidence);
    expect(final).toMatchObject({ verdict: Verdict.APPROVE, runEnded: true, writ: '' });
    await expect(agent.propose('op-3', LOOK_UP)).rejects.toMatchObject({
      reason: 'RUN_ENDED',
      metadata: { stop_reason: 'success' },
    });
    await expect(agent.getDecision('op-1')).rejects.toMatchObject({ reason: 'RUN_ENDED' });
    // A retry of the final returns the recorded decision.
    expect(await agent.propose('op-2', finalText('  All done. '))).toEqual(final);
    const run = await harness.ended(agent);
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
    const agent = await harness.agent();
    const receipt = await agent.execute('op-1', LOOK_UP, CONTEXT);
    const value = { kind: { case: 'final', value: { answer: 'So far.' } } } as const;
    const partial = { proposal: { case: 'action', value }, partial: true } as const;
    expect((await agent.propose('op-2', partial, { receipts: [receipt] })).runEnded).toBe(true);
    expect(await harness.ended(agent)).toMatchObject({
      state: RunState.PAUSED,
      result: { status: RunStatus.PARTIAL, stopReason: 'paused', answer: 'So far.' },
    });
  });

  it('rejects reviews of a cancelled run (SUP-8)', async () => {
    const agent = await harness.agent();
    const { runId } = agent.scope;
    await harness.supervisor.runs().cancelRun({ requestId: 'c-1', runId });
    await expect(agent.propose('op-1', LOOK_UP)).rejects.toMatchObject({
      reason: 'RUN_ENDED',
      metadata: { stop_reason: 'cancelled' },
    });
  });
});
