import { CallStatus } from '@writ/contracts/writ/identity/v1/claims_pb';
import { Verdict } from '@writ/contracts/writ/review/v1/decision_pb';
import {
  ToolGatewayService,
  VoidState,
} from '@writ/contracts/writ/tool/v1/tool_gateway_service_pb';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CONTEXT, finalText, LOOK_UP, RefundDesk, refund, toolText } from './refund-desk.ts';

const EMAIL = toolText('send_refund_email', { user_id: 42, amount_usd: 250, message: 'Done.' });
const DONE = finalText('Done.');
const refunded = (amountUsd: number) => ({ status: 'ok', refund: { amount_usd: amountUsd } });

describe('receipts', () => {
  let desk: RefundDesk;
  beforeAll(async () => {
    desk = await RefundDesk.start();
  });
  afterAll(() => desk.close());

  it('open a gate when the worker carries them (SV-3, TG-8)', async () => {
    const agent = await desk.agent();
    const receipt = await agent.execute('op-1', LOOK_UP, CONTEXT);
    expect((await agent.propose('op-2', DONE)).reason).toBe('final_requires_context');
    const final = await agent.propose('op-3', DONE, { receipts: [receipt] });
    expect(final).toMatchObject({ reason: 'final_with_context', runEnded: true });
  });

  it('open a gate when the gateway delivers them, once and for all', async () => {
    const agent = await desk.agent();
    const decision = await agent.propose('op-1', refund(250));
    const receipt = await agent.receipt(decision, refunded(250));
    expect((await agent.propose('op-2', EMAIL)).reason).toBe('email_before_refund');
    const [id] = await desk.report(receipt);
    expect(id).toMatch(/^rcpt_/);
    expect(await desk.report(receipt, receipt)).toEqual([id, id]);
    expect((await agent.propose('op-3', EMAIL)).reason).toBe('email_after_refund');
  });

  it('open no gate when the call failed, was refused or looked in vain (SV-3)', async () => {
    const agent = await desk.agent();
    const results = [
      { result: {}, status: CallStatus.ERROR, stopReason: 'tool_error:get_refund_context' },
      { result: {}, status: CallStatus.REFUSED, stopReason: 'max_tool_calls' },
      { result: { error: 'no such user' }, status: CallStatus.OK },
    ];
    for (const [index, { result, ...claims }] of results.entries()) {
      const decision = await agent.propose(`op-${index}`, LOOK_UP);
      await desk.report(await agent.receipt(decision, result, claims));
    }
    expect((await agent.propose('op-9', DONE)).reason).toBe('final_requires_context');
  });

  it('gain a worker nothing when it withholds them: what was approved counts (SV-3)', async () => {
    const agent = await desk.agent();
    expect((await agent.propose('op-1', refund(1000))).verdict).toBe(Verdict.APPROVE);
    expect((await agent.propose('op-2', refund(1000))).verdict).toBe(Verdict.APPROVE);
    expect(await agent.propose('op-3', refund(1))).toMatchObject({
      reason: 'refund_budget_exhausted',
      writ: '',
    });
    expect((await agent.propose('op-4', DONE)).reason).toBe('final_requires_context');
  });

  it('give back what a refused or burnt call had counted for, and only that (SV-3)', async () => {
    const agent = await desk.agent();
    const refused = await agent.propose('op-1', refund(1000));
    const burnt = await agent.propose('op-2', refund(1000));
    await desk.report(
      await agent.receipt(
        refused,
        {},
        { status: CallStatus.REFUSED, stopReason: 'max_tool_calls' },
      ),
      await agent.receipt(burnt, {}, { status: CallStatus.VOID, argsSha256: '', tool: '-' }),
    );
    expect((await agent.propose('op-3', refund(1000))).verdict).toBe(Verdict.APPROVE);
    expect((await agent.propose('op-4', refund(1000))).verdict).toBe(Verdict.APPROVE);
    expect((await agent.propose('op-5', refund(1))).reason).toBe('refund_budget_exhausted');
  });

  it('count for what was really paid (SV-3)', async () => {
    const agent = await desk.agent();
    const decision = await agent.propose('op-1', refund(1000));
    const receipt = await agent.receipt(decision, refunded(900));
    const next = await agent.propose('op-2', refund(1000), { receipts: [receipt] });
    expect(next.revisedAction).toBeUndefined();
    expect((await agent.propose('op-3', refund(500), {})).revisedAction?.kind.value).toMatchObject({
      argumentsJson: expect.stringContaining('"amount_usd":100,'),
    });
  });

  it('are refused when forged, foreign or about something else, with the whole review', async () => {
    const agent = await desk.agent();
    const other = await desk.agent();
    const decision = await agent.propose('op-1', LOOK_UP);
    await other.propose('op-1', LOOK_UP);
    const own = await agent.receipt(decision, CONTEXT);
    const worker = desk.supervisor.fakes.peer('agent-worker').signer;
    const forged = [
      ['RECEIPT_INVALID', `${own.slice(0, -8)}AAAAAAAA`],
      ['RECEIPT_INVALID', await agent.receipt(decision, CONTEXT, {}, worker)],
      ['RECEIPT_INVALID', decision.writ],
      ['RECEIPT_WRONG_RUN', await agent.receipt(decision, CONTEXT, { tenant: 'rivals' })],
      ['RECEIPT_WRONG_RUN', await other.receipt(decision, CONTEXT)],
      ['RECEIPT_MISMATCH', await agent.receipt(decision, CONTEXT, { callId: 'op-7' })],
      ['RECEIPT_MISMATCH', await agent.receipt(decision, CONTEXT, { tool: 'issue_refund' })],
      ['RECEIPT_MISMATCH', await agent.receipt(decision, CONTEXT, { argsSha256: '0'.repeat(64) })],
    ] as const;
    for (const [reason, receipt] of forged) {
      await expect(agent.propose('op-2', DONE, { receipts: [receipt] })).rejects.toMatchObject({
        reason,
      });
    }
    // None of them left a trace: the same call_id is still free, and the step not counted.
    expect(await agent.propose('op-2', DONE)).toMatchObject({
      reason: 'final_requires_context',
      step: 2,
    });
    expect(await agent.propose('op-3', DONE, { receipts: [own] })).toMatchObject({
      runEnded: true,
    });
  });

  it('are acknowledged to the gateway when they can never be right, and only then (TG-8)', async () => {
    const agent = await desk.agent();
    const decision = await agent.propose('op-1', LOOK_UP);
    const own = await agent.receipt(decision, CONTEXT);
    const { jti } = JSON.parse(Buffer.from(own.split('.')[1] ?? '', 'base64url').toString());
    expect(await desk.report(`${own.slice(0, -8)}AAAAAAAA`)).toEqual([jti]);
    expect(await desk.report('garbage')).toEqual([]);
    const unfit = await agent.receipt(decision, CONTEXT, { callId: 'op-7' });
    expect(await desk.report(unfit)).toHaveLength(1);
    expect((await agent.propose('op-2', DONE)).reason).toBe('final_requires_context');
  });

  it('vouch for an observation by its bytes; any other is not shown (SV-7)', async () => {
    const agent = await desk.agent();
    const first = await agent.execute('op-1', LOOK_UP, CONTEXT);
    const second = await agent.execute('op-2', LOOK_UP, CONTEXT);
    await agent.propose('op-3', DONE, {
      receipts: [first, second],
      observations: [
        { callId: 'op-1', content: JSON.stringify(CONTEXT) },
        { callId: 'op-2', content: '{"user":{"id":666}}' },
      ],
    });
    const { result } = await desk.ended(agent);
    expect(result?.history.map((entry) => entry.observationJson)).toEqual([
      JSON.stringify(CONTEXT),
      '',
      '{"status":"final"}',
    ]);
  });

  it('are asked for when a run ends without them, and what was never used is burnt (TG-8, SV-7)', async () => {
    const agent = await desk.agent();
    const looked = await agent.propose('op-1', LOOK_UP);
    const unused = await agent.propose('op-2', refund(250));
    const receipts = new Map([
      ['op-1', await agent.receipt(looked, CONTEXT)],
      ['op-2', await agent.receipt(unused, {}, { status: CallStatus.VOID, argsSha256: '' })],
    ]);
    desk.supervisor.fakes.answer(ToolGatewayService.method.voidWrit, ({ call }) => ({
      state: call?.callId === 'op-1' ? VoidState.RECEIPT : VoidState.BURNT,
      receipt: receipts.get(call?.callId ?? '') ?? '',
    }));
    const { runId } = agent.scope;
    await desk.supervisor.runs().cancelRun({ requestId: `c-${runId}`, runId });
    const { result } = await desk.ended(agent);
    expect(result?.trace.map(({ callId, ok }) => [callId, ok])).toEqual([
      ['op-1', true],
      ['op-2', false],
    ]);
  });

  it('amend the result of a run that is over when they come late (TG-8)', async () => {
    const agent = await desk.agent();
    const looked = await agent.propose('op-1', LOOK_UP);
    const paid = await agent.propose('op-2', refund(250));
    const unknown = await agent.receipt(
      paid,
      {},
      {
        status: CallStatus.UNKNOWN,
        stopReason: 'outcome_unknown:issue_refund',
      },
    );
    await desk.report(await agent.receipt(looked, CONTEXT), unknown);
    const { runId } = agent.scope;
    await desk.supervisor.runs().cancelRun({ requestId: `c-${runId}`, runId });
    const before = await desk.ended(agent);
    expect(before.result?.trace[1]).toMatchObject({ ok: false });
    await desk.report(await agent.receipt(paid, refunded(250), { revision: 2 }));
    const after = await desk.ended(agent);
    expect(after.result?.trace[1]).toMatchObject({ ok: true, stopReason: '' });
    expect(after.result?.history).toHaveLength(2);
  });
});
