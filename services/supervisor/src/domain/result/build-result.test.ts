import { describe, expect, it } from 'vitest';
import { buildResult } from './build-result.ts';
import type { RecordedAction } from './recorded-action.ts';
import type {
  DecisionRecord,
  EndingRecord,
  ReceiptRecord,
  ResultRecords,
} from './result-records.ts';
import { NO_USAGE } from './run-usage.ts';

const AGENT = { name: 'refund-worker', instance: 'refund-worker-1' };
const PERSON = {
  approvalId: 'apr-1',
  approved: true,
  comment: '',
  basis: 'approved_with_cap:800',
  decidedBy: 'anna',
  decidedAt: '2026-02-26T10:00:00.000Z',
};

const context = tool('get_refund_context', { user_id: 42 });
const refund = tool('issue_refund', { user_id: 42, amount_usd: 1000, reason: 'Annual plan.' });
const email = tool('send_refund_email', { user_id: 42, amount_usd: 1000, message: 'Done.' });
const final: RecordedAction = { kind: 'final', answer: '1000 USD were refunded.' };

function tool(name: string, args: Record<string, string | number>): RecordedAction {
  return { kind: 'tool', name, args };
}

function approved(step: number, action: RecordedAction, reason: string): DecisionRecord {
  return {
    agent: AGENT,
    callId: `op-${step}`,
    step,
    verdict: 'approve',
    reason,
    risk: 0.4,
    hasEffect: action.kind === 'tool' && action.name !== 'get_refund_context',
    rawText: undefined,
    action,
    revisedAction: undefined,
    executedAction: action,
    executedFrom: 'original',
    stopReason: undefined,
    human: undefined,
  };
}

function stopped(decision: DecisionRecord, stopReason: string): DecisionRecord {
  return {
    ...decision,
    verdict: 'block',
    executedAction: undefined,
    executedFrom: undefined,
    stopReason,
  };
}

function receipt(step: number, observation: object): ReceiptRecord {
  return {
    instance: AGENT.instance,
    callId: `op-${step}`,
    status: 'ok',
    outcome: 'ok',
    stopReason: undefined,
    observation: JSON.stringify(observation),
  };
}

function ended(stopReason: string, changes: Partial<EndingRecord> = {}): EndingRecord {
  return {
    instance: AGENT.instance,
    stopReason,
    phase: undefined,
    callId: undefined,
    answer: undefined,
    detail: undefined,
    unverified: false,
    ...changes,
  };
}

function records(changes: Partial<ResultRecords>): ResultRecords {
  return { ending: ended('cancelled'), decisions: [], receipts: [], tab: undefined, ...changes };
}

describe('buildResult', () => {
  const decisions = [
    approved(1, context, 'read_only_context'),
    approved(2, refund, 'refund_within_auto_limit'),
    approved(3, email, 'email_after_refund'),
    approved(4, final, 'final_with_context'),
  ];
  const receipts = [
    receipt(1, { user: { id: 42 } }),
    receipt(2, { status: 'ok' }),
    receipt(3, { status: 'ok' }),
  ];
  const runUsage = { ...NO_USAGE, inputTokens: 900, turns: 4 };
  const answered = records({
    ending: ended('success', { callId: 'op-4', answer: '1000 USD were refunded.' }),
    decisions,
    receipts,
    tab: { usage: NO_USAGE, runUsage, failures: [] },
  });

  it('reports a refund of 1000 USD in four rows with their risk scores (SV-7)', () => {
    const result = buildResult(answered);
    expect(result).toMatchObject({
      status: 'ok',
      stopReason: 'success',
      answer: '1000 USD were refunded.',
      usage: runUsage,
      unverified: false,
    });
    expect(result.phase).toBeUndefined();
    expect(result.action).toBeUndefined();
    const row = (step: number, name: string, argsHash?: string) => ({
      step,
      tool: name,
      ...(argsHash && { argsHash }),
      decision: 'approve',
      executedFrom: 'original',
      ok: true,
      agent: AGENT,
      callId: `op-${step}`,
      riskScore: 0.4,
      ...(step < 4 && { outcome: 'ok' }),
    });
    expect(result.trace).toEqual([
      row(1, 'get_refund_context', 'feaa769a39ae'),
      row(2, 'issue_refund', expect.stringMatching(/^[0-9a-f]{12}$/) as string),
      row(3, 'send_refund_email', expect.stringMatching(/^[0-9a-f]{12}$/) as string),
      row(4, 'final'),
    ]);
    expect(result.history.map(({ step, reason }) => [step, reason])).toEqual([
      [1, 'read_only_context'],
      [2, 'refund_within_auto_limit'],
      [3, 'email_after_refund'],
      [4, 'final_with_context'],
    ]);
    expect(result.history[0]).toEqual({
      step: 1,
      action: context,
      decision: 'approve',
      reason: 'read_only_context',
      executedAction: context,
      executedFrom: 'original',
      observationJson: '{"user":{"id":42}}',
      agent: AGENT,
      callId: 'op-1',
    });
    expect(result.history[3]?.observationJson).toBe('{"status":"final"}');
  });

  it('shows which version was executed, and the approver’s answer (SV-6)', () => {
    const granted = tool('issue_refund', { user_id: 42, amount_usd: 800, reason: 'Annual plan.' });
    const escalated: DecisionRecord = {
      ...approved(2, tool('issue_refund', { user_id: 42, amount_usd: 1200 }), 'high'),
      verdict: 'escalate',
      revisedAction: refund,
      executedAction: granted,
      executedFrom: 'human_revised',
      human: PERSON,
    };
    const { trace, history } = buildResult(
      records({ decisions: [escalated], receipts: [receipt(2, { status: 'ok' })] }),
    );
    expect(trace[0]).toMatchObject({
      decision: 'escalate',
      executedFrom: 'human_revised',
      ok: true,
      humanApproved: true,
    });
    expect(history[0]).toMatchObject({
      revisedAction: refund,
      executedAction: granted,
      humanApproval: PERSON,
    });
  });

  it('lists a blocked action in the trace and not in the history', () => {
    const reason = 'supervisor_block:email_before_refund';
    const blocked = stopped(approved(2, email, 'email_before_refund'), reason);
    const result = buildResult(
      records({
        ending: ended(reason, { phase: 'supervisor', callId: 'op-2' }),
        decisions: [approved(1, context, 'read_only_context'), blocked],
        receipts: [receipt(1, {})],
      }),
    );
    expect(result).toMatchObject({ status: 'stopped', phase: 'supervisor', action: email });
    expect(result.trace[1]).toMatchObject({
      decision: 'block',
      executedFrom: 'original',
      ok: false,
      stopReason: reason,
    });
    expect(result.history).toHaveLength(1);
  });

  it('reports a rejection by a person', () => {
    const rejected: DecisionRecord = {
      ...stopped(approved(2, refund, 'high'), 'human_rejected'),
      verdict: 'escalate',
      human: { ...PERSON, approved: false },
    };
    const result = buildResult(
      records({
        ending: ended('human_rejected', { phase: 'human_approval', callId: 'op-2' }),
        decisions: [rejected],
      }),
    );
    expect(result.action).toEqual(refund);
    expect(result.trace[0]).toMatchObject({
      decision: 'escalate',
      humanApproved: false,
      stopReason: 'human_rejected',
    });
  });

  it('reports the raw text of an invalid proposal, without a row (SV-2)', () => {
    const stopReason = 'invalid_action:non_json';
    const invalid: DecisionRecord = {
      ...stopped(approved(1, context, 'non_json'), stopReason),
      verdict: 'invalid',
      action: undefined,
      rawText: 'I would rather talk.',
    };
    const result = buildResult(
      records({
        ending: ended(stopReason, { phase: 'worker', callId: 'op-1' }),
        decisions: [invalid],
      }),
    );
    expect(result).toMatchObject({ rawAction: 'I would rather talk.', trace: [], history: [] });
    expect(result.action).toBeUndefined();
  });

  it('reports a call that the gateway refused as the action at which the run stopped', () => {
    const stopReason = 'loop_detected:signature_repeat';
    const refused: ReceiptRecord = {
      ...receipt(2, {}),
      status: 'refused',
      stopReason,
      observation: undefined,
    };
    const result = buildResult(
      records({
        ending: ended(stopReason, { phase: 'execution', callId: 'op-2' }),
        decisions: decisions.slice(0, 2),
        receipts: [receipt(1, {}), refused],
      }),
    );
    expect(result.action).toEqual(refund);
    expect(result.trace[1]).toMatchObject({ ok: false, stopReason });
    expect(result.history.map(({ step }) => step)).toEqual([1]);
  });

  it('keeps a failed call in the history when the run continued (AG-10)', () => {
    const failed: ReceiptRecord = {
      ...receipt(2, { error: 'unreachable' }),
      status: 'error',
      stopReason: 'tool_error:issue_refund',
    };
    const result = buildResult({ ...answered, receipts: [receipt(1, {}), failed, receipt(3, {})] });
    expect(result.trace[1]).toMatchObject({ ok: false, stopReason: 'tool_error:issue_refund' });
    expect(result.history[1]?.observationJson).toBe('{"error":"unreachable"}');
  });

  it.each([
    ['the stop reason of a stopped run', 'cancelled', 'cancelled'],
    ['the stop reason of a partial run', 'nothing_done', 'nothing_done'],
    ['cancelled in a successful run', 'success', 'cancelled'],
  ])('reports a step that was not executed with %s (SV-7)', (_what, runStopReason, expected) => {
    const waiting: DecisionRecord = {
      ...approved(1, refund, 'high'),
      verdict: 'escalate',
      executedAction: undefined,
      executedFrom: undefined,
    };
    const burnt: ReceiptRecord = {
      ...receipt(2, {}),
      status: 'void',
      observation: undefined,
    };
    const delegation: RecordedAction = { kind: 'delegation', agent: 'scout', task: 'Look.' };
    const { trace, history } = buildResult(
      records({
        decisions: [
          waiting,
          approved(2, refund, 'fine'),
          approved(3, email, 'fine'),
          approved(4, delegation, 'fine'),
        ],
        receipts: [burnt],
        ending: ended(runStopReason),
      }),
    );
    expect(trace).toHaveLength(4);
    for (const row of trace) expect(row).toMatchObject({ ok: false, stopReason: expected });
    expect(trace[0]?.humanApproved).toBeUndefined();
    expect(history).toEqual([]);
  });

  it('verifies a model failure against the records of the meter (SV-7)', () => {
    const ending = ended('llm_timeout', { phase: 'worker', unverified: true, detail: 'Slow.' });
    const failures = [{ stopReason: 'llm_timeout', count: 1, lastCallId: 'op-1' }];
    const tab = { usage: NO_USAGE, runUsage: NO_USAGE, failures };
    expect(buildResult(records({ ending })).unverified).toBe(true);
    expect(buildResult(records({ ending, tab }))).toMatchObject({
      unverified: false,
      detail: 'Slow.',
      workerDetail: 'Slow.',
    });
  });
});
