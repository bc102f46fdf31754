import { RunState, RunStatus } from '@writ/contracts/writ/run/v1/run_pb';
import { SupervisionService } from '@writ/contracts/writ/supervision/v1/supervision_service_pb';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  CONTEXT,
  finalText,
  LOOK_UP,
  RefundHarness,
  refund,
  type TestAgent,
  toolText,
} from './refund-harness.ts';

const EMAIL = toolText('send_refund_email', { user_id: 42, amount_usd: 250, message: 'Done.' });
const DONE = finalText('All is paid.');
/** The refund limit per run without approval in cents, from the policy. */
const RUN_CAP = 200_000;
/** Refunds of one run; each row exceeds the limit. Four refunds and the other proposals use up max_steps. */
const AMOUNTS = [
  [1000, 1000, 1000, 0.01],
  [999.99, 1000, 0.02, 0.01],
  [1, 1000, 700, 300],
];

describe('a malicious worker', () => {
  let harness: RefundHarness;
  beforeAll(async () => {
    harness = await RefundHarness.start();
  });
  afterAll(() => harness.close());

  async function report(agent: TestAgent, stopReason: string, more: object = {}) {
    const { fakes, service } = harness.supervisor;
    const supervision = fakes
      .peer('agent-worker')
      .client(SupervisionService, { audience: 'supervisor', address: service.address });
    const claim = { requestId: 'o-1', stopReason, phase: 'worker', ...more };
    return await supervision.reportOutcome(claim, await agent.options());
  }

  async function stateOf({ scope: { runId } }: TestAgent): Promise<RunState | undefined> {
    return (await harness.supervisor.runs().getRun({ runId })).run?.state;
  }

  it.each(AMOUNTS.map((amounts) => [amounts]))(
    'exceeds no cap and passes no gate when it withholds every receipt and requests %j (SV-3)',
    async (amounts) => {
      const agent = await harness.agent();
      let approved = 0;
      await agent.propose('look', LOOK_UP);
      for (const [index, amount] of amounts.entries()) {
        const { executedAction, writ } = await agent.propose(`pay-${index}`, refund(amount));
        if (writ === '') continue;
        const action = executedAction?.kind;
        if (action?.case !== 'tool') throw new Error('The writ has no action.');
        const { amount_usd } = JSON.parse(action.value.argumentsJson) as { amount_usd: number };
        approved += Math.round(amount_usd * 100);
      }
      expect(approved).toBeGreaterThan(0);
      expect(approved).toBeLessThanOrEqual(RUN_CAP);
      expect(await agent.propose('mail', EMAIL)).toMatchObject({
        reason: 'email_before_refund',
        writ: '',
      });
      expect((await agent.propose('done', DONE)).reason).toBe('final_requires_context');
      // Observations without a receipt do not open the gate either.
      const observations = [{ callId: 'look', content: JSON.stringify(CONTEXT) }];
      expect(await agent.propose('again', DONE, { observations })).toMatchObject({
        reason: 'final_requires_context',
        runEnded: false,
      });
    },
  );

  it('cannot replace an approved answer by reporting another outcome later (RT-4, AG-3)', async () => {
    const agent = await harness.agent();
    const receipts = [await agent.execute('look', LOOK_UP, CONTEXT)];
    expect(await agent.propose('done', DONE, { receipts })).toMatchObject({ runEnded: true });
    expect(await report(agent, 'error:run_ended')).toMatchObject({
      stopReason: 'success',
      answer: 'All is paid.',
    });
  });

  it.each(['success', 'paused', 'cancelled', 'halted'])(
    'is refused when it reports %s without an approval, and the run continues (SV-7)',
    async (stopReason) => {
      const agent = await harness.agent();
      expect((await agent.propose('done', DONE)).reason).toBe('final_requires_context');
      for (const callId of ['', 'done', 'never']) {
        await expect(report(agent, stopReason, { callId })).rejects.toMatchObject({
          kind: 'invalid_argument',
          reason: 'OUTCOME_NOT_REPORTABLE',
          metadata: { field: 'stop_reason' },
        });
      }
      expect(await stateOf(agent)).toBe(RunState.RUNNING);
      const lookupReceipt = await agent.execute('look', LOOK_UP, CONTEXT);
      const final = await agent.propose('final', DONE, { receipts: [lookupReceipt] });
      expect(final.runEnded).toBe(true);
    },
  );

  it.each([
    'human_rejected',
    'approval_expired',
    'supervisor_block:refund_budget_exhausted',
    'tool_error:get_refund_context',
    'tool_denied:get_refund_context',
    'loop_detected:per_tool_limit',
    'outcome_unknown:get_refund_context',
    'max_steps',
    'max_seconds',
    'deadline',
    'llm_timeout',
    'provider_error:500',
  ])(
    'ends a run when it reports %s for an approved call, and the result is marked as unverified (SV-7)',
    async (stopReason) => {
      const agent = await harness.agent();
      const receipt = await agent.execute('look', LOOK_UP, CONTEXT);
      await report(agent, stopReason, { callId: 'look', receipts: [receipt] });
      const { result } = await harness.ended(agent);
      expect(result).toMatchObject({ stopReason, status: RunStatus.STOPPED, unverified: true });
      expect(result?.trace).toMatchObject([{ callId: 'look', ok: true }]);
    },
  );

  it('changes nothing with receipts of other agents or unverified observations (SV-7, TG-8)', async () => {
    const [agent, other] = [await harness.agent(), await harness.agent()];
    const own = await agent.execute('look', LOOK_UP, CONTEXT);
    const otherReceipt = await other.execute('look', LOOK_UP, CONTEXT);
    await expect(report(agent, 'stuck', { receipts: [own, otherReceipt] })).rejects.toMatchObject({
      reason: 'RECEIPT_WRONG_RUN',
    });
    expect(await stateOf(agent)).toBe(RunState.RUNNING);
    expect((await agent.propose('done', DONE)).reason).toBe('final_requires_context');
    const content = JSON.stringify({ ...CONTEXT, user: { id: 666 } });
    await report(agent, 'stuck', { receipts: [own], observations: [{ callId: 'look', content }] });
    const { result } = await harness.ended(agent);
    expect(result?.history).toMatchObject([{ callId: 'look', observationJson: '' }]);
  });
});
