import { resultJson } from '@writ/client/display';
import type { Run } from '@writ/contracts/writ/run/v1/run_pb';
import { newId } from '@writ/kernel';
import { loadExample } from '@writ/platform';
import { followRun, type Human, readHuman } from '@writ/platform/terminal';
import { startTestPlatform, type TestPlatform } from '@writ/testing/platform';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

const example = loadExample('refund-desk');
let test: TestPlatform;

beforeAll(async () => {
  test = await startTestPlatform();
});
afterAll(() => test.close());

/** Runs a script to its end; returns the result as the demo prints it. */
async function runScript(script: string, human = 'approve') {
  return resultJson(await runWith(script, readHuman(human, neverAsked)));
}

async function runWith(script: string, human: Human): Promise<Run> {
  const { run } = await test.client.runs.startRun({
    requestId: newId('req'),
    agent: example.scripts.find(({ name }) => name === script)?.agent ?? example.agent,
    goal: example.goal,
    model: `sim-${script}`,
  });
  if (run === undefined) throw new Error('StartRun answered without a run.');
  return await followRun(test.client, run.runId, human, {
    onEvent: () => undefined,
    onQuestion: () => undefined,
    onRefusedAnswer: () => undefined,
  });
}

function neverAsked(): Human {
  throw new Error('The test does not expect a question.');
}

describe('the refund desk', () => {
  it.each(example.scripts.map((script) => [script.name, script.expect] as const))(
    'ends %s as its script expects (SV-7, AG-2)',
    async (name, expected) => {
      const result = await runScript(name);
      expect({ status: result.status, stop_reason: result.stop_reason }).toEqual(expected);
    },
  );

  it('refunds 1000 USD automatically, with each step approved as proposed (SV-4, SV-6, SV-7)', async () => {
    const HASH: unknown = expect.stringMatching(/^[0-9a-f]{12}$/);
    const { trace, history, answer } = await runScript('auto-1000');
    expect(trace).toEqual([
      approvedRow(1, 'get_refund_context', {
        args_hash: 'feaa769a39ae',
        risk_score: 0.1,
        outcome: 'ok',
      }),
      approvedRow(2, 'issue_refund', { args_hash: HASH, risk_score: 0.7, outcome: 'ok' }),
      approvedRow(3, 'send_refund_email', { args_hash: HASH, risk_score: 0.3, outcome: 'ok' }),
      approvedRow(4, 'final', { risk_score: 0.1 }),
    ]);
    expect(history).toHaveLength(4);
    expect(history).toMatchObject([
      { supervisor: { reason: 'read_only_context' }, observation: { user: { name: 'Anna' } } },
      { supervisor: { reason: 'refund_within_auto_limit' }, observation: { status: 'ok' } },
      { supervisor: { reason: 'email_after_refund' }, observation: { status: 'ok' } },
      { supervisor: { reason: 'final_with_context' } },
    ]);
    expect(answer).toContain('1000');
  });

  it('executes the amount that a human capped and records it in trace and history (SV-5, SV-6)', async () => {
    const { trace, history } = await runScript('escalate-1200', 'cap:800');
    expect(at(trace, 1)).toMatchObject({
      tool: 'issue_refund',
      supervisor_decision: 'escalate',
      executed_from: 'human_revised',
      human_approved: true,
      risk_score: 0.8,
      ok: true,
    });
    expect(at(history, 1)).toMatchObject({
      action: { args: { amount_usd: 1200 } },
      supervisor: { decision: 'escalate', reason: 'high_refund_requires_human' },
      executed_action: { args: { amount_usd: 800 } },
      observation: { refund: { amount_usd: 800 } },
      human_approval: { approved: true, basis: 'approved_with_cap:800' },
    });
  });

  it("approves up to the approver's own cap when asked to approve (SV-5)", async () => {
    const { history } = await runScript('escalate-1200', 'approve');
    expect(at(history, 1)).toMatchObject({ executed_action: { args: { amount_usd: 800 } } });
  });

  it('stops with human_rejected and executes nothing when a human rejects (SV-5)', async () => {
    const result = await runScript('escalate-1200', 'reject');
    expect(result).toMatchObject({
      status: 'stopped',
      stop_reason: 'human_rejected',
      phase: 'human_approval',
    });
    expect(at(result.trace, 1)).toMatchObject({ human_approved: false, ok: false });
  });

  it('reviews a revised action again, so that a large refund is still escalated (SV-10)', async () => {
    const { trace, history } = await runScript('missing-reason-1200');
    expect(at(trace, 1)).toMatchObject({ supervisor_decision: 'escalate', human_approved: true });
    expect(at(history, 1)).toMatchObject({
      supervisor: { revised_action: { args: { reason: expect.stringMatching(/\S/) } } },
    });
  });

  it('executes a revised action as revised by the supervisor (SV-3, SV-6)', async () => {
    const { trace } = await runScript('missing-reason');
    expect(at(trace, 1)).toMatchObject({
      supervisor_decision: 'revise',
      executed_from: 'supervisor_revised',
      ok: true,
    });
  });

  it('reports the origin and the raw text of an invalid action (SV-2, SV-7)', async () => {
    expect(await runScript('bad-json')).toMatchObject({
      stop_reason: 'invalid_action:non_json',
      phase: 'worker',
      raw_action: expect.stringMatching(/\S/),
    });
  });

  it('reports the usage and the cost of a run (EM-6, EM-10)', async () => {
    const { usage } = await runScript('auto-1000');
    expect(usage).toMatchObject({ turns: 4, input_tokens: expect.any(Number) });
    expect(Number((usage as { cost_usd: string }).cost_usd)).toBeGreaterThan(0);
  });
});

function approvedRow(step: number, tool: string, more: object) {
  return {
    step,
    tool,
    supervisor_decision: 'approve',
    executed_from: 'original',
    ok: true,
    ...more,
  };
}

function at(rows: unknown, index: number): unknown {
  return Array.isArray(rows) ? rows[index] : undefined;
}
