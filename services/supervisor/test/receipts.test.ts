import { CallStatus } from '@writ/contracts/writ/identity/v1/claims_pb';
import { Verdict } from '@writ/contracts/writ/review/v1/decision_pb';
import {
  ToolGatewayService,
  VoidState,
} from '@writ/contracts/writ/tool/v1/tool_gateway_service_pb';
import { openSigner } from '@writ/identity';
import { ManualClock } from '@writ/kernel';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { CONTEXT, finalText, LOOK_UP, RefundHarness, refund, toolText } from './refund-harness.ts';
import { openSecondStore } from './supervisor-under-test.ts';

const EMAIL = toolText('send_refund_email', { user_id: 42, amount_usd: 250, message: 'Done.' });
const DONE = finalText('Done.');
const refunded = (amountUsd: number) => ({ status: 'ok', refund: { amount_usd: amountUsd } });

describe('receipts', () => {
  let harness: RefundHarness;
  beforeAll(async () => {
    harness = await RefundHarness.start();
  });
  afterAll(() => harness.close());

  it('open a gate when the worker presents them (SV-3, TG-8)', async () => {
    const agent = await harness.agent();
    const receipt = await agent.execute('op-1', LOOK_UP, CONTEXT);
    expect((await agent.propose('op-2', DONE)).reason).toBe('final_requires_context');
    const final = await agent.propose('op-3', DONE, { receipts: [receipt] });
    expect(final).toMatchObject({ reason: 'final_with_context', runEnded: true });
  });

  it('open a gate permanently when the gateway delivers them', async () => {
    const agent = await harness.agent();
    const decision = await agent.propose('op-1', refund(250));
    const receipt = await agent.receipt(decision, refunded(250));
    expect((await agent.propose('op-2', EMAIL)).reason).toBe('email_before_refund');
    const [id] = await harness.report(receipt);
    expect(id).toMatch(/^rcpt_/);
    expect(await harness.report(receipt, receipt)).toEqual([id, id]);
    expect((await agent.propose('op-3', EMAIL)).reason).toBe('email_after_refund');
  });

  it('need no transaction when the gateway reports a receipt that the worker has presented (TG-8, CO-1)', async () => {
    const agent = await harness.agent();
    const receipt = await agent.execute('op-1', LOOK_UP, CONTEXT);
    await agent.propose('op-2', DONE, { receipts: [receipt] });
    await harness.ended(agent);
    const other = await openSecondStore(harness.supervisor);
    onTestFinished(() => other.close());
    // Holds the write lock of the database, so that a transaction of the supervisor would have to wait.
    await other.transaction(async () => {
      expect(await harness.report(receipt)).toHaveLength(1);
    });
  });

  it('do not open a gate when the call failed, was refused or found nothing (SV-3)', async () => {
    const agent = await harness.agent();
    const results = [
      { result: {}, status: CallStatus.ERROR, stopReason: 'tool_error:get_refund_context' },
      { result: {}, status: CallStatus.REFUSED, stopReason: 'max_tool_calls' },
      { result: { error: 'no such user' }, status: CallStatus.OK },
    ];
    for (const [index, { result, ...claims }] of results.entries()) {
      const decision = await agent.propose(`op-${index}`, LOOK_UP);
      await harness.report(await agent.receipt(decision, result, claims));
    }
    expect((await agent.propose('op-9', DONE)).reason).toBe('final_requires_context');
  });

  it('give no advantage to a worker that withholds them, because approved amounts count (SV-3)', async () => {
    const agent = await harness.agent();
    expect((await agent.propose('op-1', refund(1000))).verdict).toBe(Verdict.APPROVE);
    expect((await agent.propose('op-2', refund(1000))).verdict).toBe(Verdict.APPROVE);
    expect(await agent.propose('op-3', refund(1))).toMatchObject({
      reason: 'refund_budget_exhausted',
      writ: '',
    });
    expect((await agent.propose('op-4', DONE)).reason).toBe('final_requires_context');
  });

  it('of a refused or voided call restore exactly the amount that was counted for it (SV-3)', async () => {
    const agent = await harness.agent();
    const refused = await agent.propose('op-1', refund(1000));
    const voided = await agent.propose('op-2', refund(1000));
    await harness.report(
      await agent.receipt(
        refused,
        {},
        { status: CallStatus.REFUSED, stopReason: 'max_tool_calls' },
      ),
      await agent.receipt(voided, {}, { status: CallStatus.VOID, argsSha256: '', tool: '-' }),
    );
    expect((await agent.propose('op-3', refund(1000))).verdict).toBe(Verdict.APPROVE);
    expect((await agent.propose('op-4', refund(1000))).verdict).toBe(Verdict.APPROVE);
    expect((await agent.propose('op-5', refund(1))).reason).toBe('refund_budget_exhausted');
  });

  it('replace the approved amount with the amount that was paid (SV-3)', async () => {
    const agent = await harness.agent();
    const decision = await agent.propose('op-1', refund(1000));
    const receipt = await agent.receipt(decision, refunded(900));
    const next = await agent.propose('op-2', refund(1000), { receipts: [receipt] });
    expect(next.revisedAction).toBeUndefined();
    expect((await agent.propose('op-3', refund(500), {})).revisedAction?.kind.value).toMatchObject({
      argumentsJson: expect.stringContaining('"amount_usd":100,'),
    });
  });

  it('cause the whole review to be rejected when they are forged or belong to another agent or call', async () => {
    const agent = await harness.agent();
    const other = await harness.agent();
    const decision = await agent.propose('op-1', LOOK_UP);
    await other.propose('op-1', LOOK_UP);
    const own = await agent.receipt(decision, CONTEXT);
    const worker = harness.supervisor.fakes.peer('agent-worker').signer;
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
    // A rejected review leaves no trace: the call_id is unused, and the step is not counted.
    expect(await agent.propose('op-2', DONE)).toMatchObject({
      reason: 'final_requires_context',
      step: 2,
    });
    expect(await agent.propose('op-3', DONE, { receipts: [own] })).toMatchObject({
      runEnded: true,
    });
  });

  it('are accepted from a gateway whose clock was an hour ahead (BD-3)', async () => {
    const agent = await harness.agent();
    const decision = await agent.propose('op-1', LOOK_UP);
    const { service, keyDir } = harness.supervisor.fakes.peer('tool-gateway');
    const clock = new ManualClock(new Date(Date.now() + 3_600_000));
    const ahead = await openSigner({ service, keyDir, clock });
    const receipt = await agent.receipt(decision, CONTEXT, {}, ahead);
    const final = await agent.propose('op-2', DONE, { receipts: [receipt] });
    expect(final).toMatchObject({ reason: 'final_with_context', runEnded: true });
    expect(await harness.report(receipt)).toHaveLength(1);
  });

  it('are acknowledged to the gateway only when they are verifiable or permanently invalid (TG-8)', async () => {
    const agent = await harness.agent();
    const decision = await agent.propose('op-1', LOOK_UP);
    const own = await agent.receipt(decision, CONTEXT);
    const { jti } = JSON.parse(Buffer.from(own.split('.')[1] ?? '', 'base64url').toString());
    expect(await harness.report(`${own.slice(0, -8)}AAAAAAAA`)).toEqual([jti]);
    expect(await harness.report('garbage')).toEqual([]);
    const mismatched = await agent.receipt(decision, CONTEXT, { callId: 'op-7' });
    expect(await harness.report(mismatched)).toHaveLength(1);
    expect((await agent.propose('op-2', DONE)).reason).toBe('final_requires_context');
  });

  it('verify an observation by the digest of its bytes; unverified observations are omitted (SV-7)', async () => {
    const agent = await harness.agent();
    const first = await agent.execute('op-1', LOOK_UP, CONTEXT);
    const second = await agent.execute('op-2', LOOK_UP, CONTEXT);
    await agent.propose('op-3', DONE, {
      receipts: [first, second],
      observations: [
        { callId: 'op-1', content: JSON.stringify(CONTEXT) },
        { callId: 'op-2', content: '{"user":{"id":666}}' },
      ],
    });
    const { result } = await harness.ended(agent);
    expect(result?.history.map((entry) => entry.observationJson)).toEqual([
      JSON.stringify(CONTEXT),
      '',
      '{"status":"final"}',
    ]);
  });

  it('are requested at the end of a run, and unused writs are voided (TG-8, SV-7)', async () => {
    const agent = await harness.agent();
    const lookup = await agent.propose('op-1', LOOK_UP);
    const unused = await agent.propose('op-2', refund(250));
    const receipts = new Map([
      ['op-1', await agent.receipt(lookup, CONTEXT)],
      ['op-2', await agent.receipt(unused, {}, { status: CallStatus.VOID, argsSha256: '' })],
    ]);
    harness.supervisor.fakes.answer(ToolGatewayService.method.voidWrit, ({ call }) => ({
      state: call?.callId === 'op-1' ? VoidState.RECEIPT : VoidState.BURNT,
      receipt: receipts.get(call?.callId ?? '') ?? '',
    }));
    const { runId } = agent.scope;
    await harness.supervisor.runs().cancelRun({ requestId: `c-${runId}`, runId });
    const { result } = await harness.ended(agent);
    expect(result?.trace.map(({ callId, ok }) => [callId, ok])).toEqual([
      ['op-1', true],
      ['op-2', false],
    ]);
  });

  it('amend the result of an ended run when they arrive late (TG-8)', async () => {
    const agent = await harness.agent();
    const lookup = await agent.propose('op-1', LOOK_UP);
    const paid = await agent.propose('op-2', refund(250));
    const unknown = await agent.receipt(
      paid,
      {},
      {
        status: CallStatus.UNKNOWN,
        stopReason: 'outcome_unknown:issue_refund',
      },
    );
    await harness.report(await agent.receipt(lookup, CONTEXT), unknown);
    const { runId } = agent.scope;
    await harness.supervisor.runs().cancelRun({ requestId: `c-${runId}`, runId });
    const before = await harness.ended(agent);
    expect(before.result?.trace[1]).toMatchObject({ ok: false });
    await harness.report(await agent.receipt(paid, refunded(250), { revision: 2 }));
    const after = await harness.ended(agent);
    expect(after.result?.trace[1]).toMatchObject({ ok: true, stopReason: '' });
    expect(after.result?.history).toHaveLength(2);
    const events = await Array.fromAsync(harness.supervisor.runs().watchRun({ runId }));
    expect(events.at(-1)?.event?.entry).toEqual({ case: 'result', value: after.result });
  });
});
