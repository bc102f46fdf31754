import { readFileSync } from 'node:fs';
import type { Evidence } from '@writ/contracts/writ/approval/v1/approval_pb';
import { Verdict } from '@writ/contracts/writ/review/v1/decision_pb';
import type { JsonObject } from '@writ/kernel';
import { afterEach, describe, expect, it } from 'vitest';
import { LOOK_UP, RefundHarness, refund, type TestAgent } from './refund-harness.ts';
import { exampleFile } from './refund-tools.ts';

const policyText = readFileSync(exampleFile('policy.yaml'), 'utf8');
const CUSTOMER = { user: { id: 42, name: 'Anna' } };

describe('the evidence of an approval', () => {
  let harness: RefundHarness;
  afterEach(() => harness.close());

  const start = async (evidence: string): Promise<TestAgent> => {
    const text = policyText.replace(/ {2}evidence:\n( {4}.*\n)+/, `  evidence: ${evidence}\n`);
    harness = await RefundHarness.start({ config: { policy: { text, file: 'policy.yaml' } } });
    return await harness.agent();
  };

  /** A look-up with its result, then a refund that needs a person. Returns the approval id. */
  const escalate = async (agent: TestAgent, result: JsonObject = CUSTOMER): Promise<string> => {
    const receipts = [await agent.execute('op-1', LOOK_UP, result)];
    const observations = [{ callId: 'op-1', content: JSON.stringify(result) }];
    await agent.propose('op-2', refund(-1), { receipts, observations });
    return (await agent.propose('op-3', refund(1200))).approvalId;
  };

  const read = async (approvalId: string): Promise<Evidence | undefined> =>
    (await harness.approvals('dora').getApproval({ approvalId })).approval?.evidence;

  it('shows goal, facts, steps and named results to an approver who may not read runs (SV-5, PE-1)', async () => {
    const agent = await start('{ observations: [get_refund_context] }');
    const approvalId = await escalate(agent);
    await agent.propose('op-4', refund(5));
    const { runId } = agent.scope;
    await expect(harness.supervisor.runs('dora').getRun({ runId })).rejects.toMatchObject({
      kind: 'permission_denied',
    });
    const evidence = await read(approvalId);
    expect(evidence).toMatchObject({
      goal: 'Refund it.',
      truncated: false,
      steps: [
        {
          step: 1,
          agent: { name: 'refund-worker' },
          callId: 'op-1',
          name: 'get_refund_context',
          content: '{"user_id":42}',
          decision: Verdict.APPROVE,
          reason: 'read_only_context',
          stopReason: '',
          outcome: 'ok',
          observation: JSON.stringify(CUSTOMER),
        },
        {
          callId: 'op-2',
          name: 'issue_refund',
          decision: Verdict.BLOCK,
          stopReason: 'supervisor_block:invalid_refund_amount',
          outcome: '',
          observation: '',
        },
      ],
    });
    expect(JSON.parse(evidence?.factsJson ?? '')).toEqual({
      executed_refund_total: 0,
      has_context: true,
      refund_executed: false,
    });
    for await (const { approval } of harness.approvals('dora').watchApprovals({ runId })) {
      expect(approval?.evidence).toEqual(evidence);
      break;
    }
    const { approvals } = await harness.approvals('dora').listApprovals({ runId });
    expect(approvals.map((listed) => listed.evidence)).toEqual([undefined]);
  });

  it('contains no result of a tool by default, and nothing that the policy excludes (SV-5)', async () => {
    const byDefault = await start('{}');
    const shown = await read(await escalate(byDefault));
    expect(shown?.steps.map(({ observation }) => observation)).toEqual(['', '']);
    await harness.close();
    const agent = await start('{ goal: false, history: false, facts: [has_context] }');
    expect(await read(await escalate(agent))).toMatchObject({
      goal: '',
      factsJson: '{"has_context":true}',
      steps: [],
      truncated: false,
    });
    await harness.close();
    const results = await start('{ history: false, facts: false, observations: ["get_*"] }');
    expect(await read(await escalate(results))).toMatchObject({
      factsJson: '',
      steps: [{ name: 'get_refund_context', observation: JSON.stringify(CUSTOMER) }],
    });
  });

  it('is limited in size, and is marked when it was truncated (SV-5, BD-1)', async () => {
    const agent = await start('{ observations: ["*"] }');
    const long = { user: { id: 42, name: 'ä'.repeat(5_000) } };
    const evidence = await read(await escalate(agent, long));
    expect(evidence?.truncated).toBe(true);
    const [step] = evidence?.steps ?? [];
    expect(step?.truncated).toBe(true);
    const bytes = Buffer.byteLength(step?.observation ?? '');
    expect(bytes).toBeGreaterThan(4_000);
    expect(bytes).toBeLessThanOrEqual(4_096);
    expect(JSON.stringify(long).startsWith(step?.observation ?? '?')).toBe(true);
  });
});
