import { readFileSync } from 'node:fs';
import { ApprovalState } from '@writ/contracts/writ/approval/v1/approval_pb';
import fc from 'fast-check';
import { afterEach, describe, expect, it } from 'vitest';
import { RefundHarness, refund, toolText } from './refund-harness.ts';
import { exampleFile } from './refund-tools.ts';
import type { PersonName } from './supervisor-under-test.ts';

const policyText = readFileSync(exampleFile('policy.yaml'), 'utf8');
const ARGS = { user_id: 42, amount_usd: 1200, reason: 'Paid twice.' };

describe('the rights of an approver', () => {
  let harness: RefundHarness;
  let requests = 0;
  afterEach(() => harness.close());

  /** A pending refund of 1,200 USD under a policy. */
  const pending = async (text = policyText): Promise<string> => {
    harness = await RefundHarness.start({ config: { policy: { text, file: 'policy.yaml' } } });
    const agent = await harness.agent();
    return (await agent.propose('op-1', refund(1200))).approvalId;
  };

  const decide = (approvalId: string, args: object | undefined, person: PersonName = 'dora') => {
    requests += 1;
    const request = { approvalId, requestId: `d-${requests}` };
    const approvals = harness.approvals(person);
    if (args === undefined) {
      return approvals.decideApproval({ ...request, answer: { case: 'approve', value: {} } });
    }
    const value = { argumentsJson: JSON.stringify(args) };
    return approvals.decideApproval({ ...request, answer: { case: 'approveWithEdits', value } });
  };

  const read = async (approvalId: string, person: PersonName = 'dora') =>
    (await harness.approvals(person).getApproval({ approvalId })).approval;

  it('include changes only of arguments that the policy lists as editable (SV-5)', async () => {
    const approvalId = await pending();
    expect(await read(approvalId)).toMatchObject({
      editableArguments: [{ argument: 'amount_usd', maxJson: '800', decimals: 2 }],
      readerRights: {
        mayApprove: false,
        mayEdit: true,
        refusal: "amount_usd 1200 exceeds dora's cap of 800 USD for issue_refund.",
      },
    });
    await expect(
      decide(approvalId, { ...ARGS, user_id: 4711, reason: 'x', amount_usd: 700 }),
    ).rejects.toMatchObject({
      reason: 'APPROVAL_ARGUMENT_LOCKED',
      message:
        'Arguments user_id, reason of issue_refund are locked: the policy lets approvers change only amount_usd.',
      metadata: { locked: 'user_id,reason', editable: 'amount_usd' },
    });
    expect((await read(approvalId))?.state).toBe(ApprovalState.PENDING);
    // Leading and trailing white space is not a change: the tool receives the text trimmed.
    const { approval } = await decide(approvalId, {
      ...ARGS,
      reason: ' Paid twice. ',
      amount_usd: 700,
    });
    expect(approval?.state).toBe(ApprovalState.APPROVED);
    expect(approval?.readerRights).toBeUndefined();
  });

  it('come from the editable list of the rule that escalated, otherwise from human.editable of the tool, which can lock every argument (SV-5)', async () => {
    const approvalId = await pending(
      policyText
        .replace(
          'decide: escalate\n    reason: high_refund_requires_human',
          'decide: escalate\n    editable: [reason]\n    reason: high_refund_requires_human',
        )
        .replace('max_usd: 800', 'max_usd: 5000'),
    );
    expect((await read(approvalId))?.editableArguments).toMatchObject([
      { argument: 'reason', maxJson: '' },
    ]);
    await expect(decide(approvalId, { ...ARGS, amount_usd: 5 })).rejects.toMatchObject({
      message: expect.stringContaining('Argument amount_usd of issue_refund is locked'),
    });
    const { approval } = await decide(approvalId, { ...ARGS, reason: 'Charged twice.' });
    expect(approval?.state).toBe(ApprovalState.APPROVED);
    await harness.close();

    const locked = await pending(
      policyText
        .replace('caps:', 'editable: [{ tool: "*", arguments: [] }]\n  caps:')
        .replace('max_usd: 800', 'max_usd: 5000'),
    );
    expect((await read(locked))?.readerRights).toMatchObject({ mayApprove: true, mayEdit: false });
    await expect(decide(locked, { ...ARGS, amount_usd: 5 })).rejects.toMatchObject({
      message: expect.stringContaining(
        'the policy does not let approvers change arguments; approve the action unchanged',
      ),
    });
    expect((await decide(locked, undefined)).approval?.state).toBe(ApprovalState.APPROVED);
  });

  it('include the revision that the policy proposes for a locked argument (SV-5)', async () => {
    const approvalId = await pending(
      policyText
        .replace('max_usd: 800', 'max_usd: 5000')
        .replace(
          '  - id: refund-by-a-person',
          '  - id: mark\n    match: { tool: issue_refund }\n    when: args.reason != "Approved."\n    decide: revise\n    set: { reason: { value: Approved. } }\n    reason: marked\n\n  - id: refund-by-a-person',
        ),
    );
    const { proposedArgumentsJson } = await decide(approvalId, { ...ARGS, amount_usd: 900 });
    expect(JSON.parse(proposedArgumentsJson)).toEqual({
      ...ARGS,
      amount_usd: 900,
      reason: 'Approved.',
    });
    await expect(
      decide(approvalId, { ...ARGS, amount_usd: 900, reason: 'Mine.' }),
    ).rejects.toMatchObject({ reason: 'APPROVAL_ARGUMENT_LOCKED' });
    const { approval } = await decide(approvalId, JSON.parse(proposedArgumentsJson));
    expect(approval?.state).toBe(ApprovalState.APPROVED);
  });

  it('exclude amounts with fractions of a cent, which are rejected instead of rounded (SV-5, TG-3)', async () => {
    const approvalId = await pending();
    await expect(decide(approvalId, { ...ARGS, amount_usd: 700.555 })).rejects.toMatchObject({
      reason: 'INVALID_ARGUMENTS',
      message: expect.stringContaining('amount_usd must have at most 2 decimal places'),
      metadata: { argument: 'amount_usd' },
    });
    const fractions = fc
      .integer({ min: 1, max: 800_000 })
      .filter((mills) => mills % 10 !== 0)
      .map((mills) => mills / 1000);
    await fc.assert(
      fc.asyncProperty(fractions, async (amount_usd) => {
        await expect(decide(approvalId, { ...ARGS, amount_usd })).rejects.toMatchObject({
          reason: 'INVALID_ARGUMENTS',
        });
      }),
      { numRuns: 25 },
    );
    expect((await read(approvalId))?.state).toBe(ApprovalState.PENDING);
    const agent = await harness.agent();
    const tooPrecise = toolText('issue_refund', { ...ARGS, amount_usd: 0.005 });
    const refused = await agent.propose('op-2', tooPrecise);
    expect(refused.stopReason).toBe('invalid_action:bad_arg_type:issue_refund:amount_usd');
    expect(refused.executedAction).toBeUndefined();
  });

  it('come from any role of the approver, and the refusal names a missing role (SV-5, PE-1)', async () => {
    const approvalId = await pending(
      policyText.replace('max_usd: 800', 'max_usd: 2000\n      role: approver'),
    );
    // anna has several roles, admin included, like the development key.
    const anna = await read(approvalId, 'anna');
    expect(anna?.caps).toMatchObject([{ argument: 'amount_usd', maxJson: '2000' }]);
    const { approval } = await decide(approvalId, undefined, 'anna');
    expect(approval?.state).toBe(ApprovalState.APPROVED);
    await harness.close();

    const other = await pending(
      policyText.replace('max_usd: 800', 'max_usd: 2000\n      role: admin'),
    );
    const refusal =
      'dora is not permitted to approve issue_refund: a cap on amount_usd requires the role admin; roles of this approver: approver.';
    expect((await read(other))?.readerRights).toMatchObject({
      mayApprove: false,
      mayEdit: false,
      refusal,
    });
    await expect(decide(other, undefined)).rejects.toMatchObject({
      reason: 'APPROVAL_CAP_MISSING',
      message: refusal,
    });
  });

  it('allow an edit by changes_json, whose basis is recorded while the comment stays empty (SV-5)', async () => {
    const approvalId = await pending();
    const edit = (value: { argumentsJson?: string; changesJson?: string }) =>
      harness.approvals('dora').decideApproval({
        approvalId,
        requestId: 'd-changes',
        answer: { case: 'approveWithEdits', value },
      });
    for (const value of [{}, { argumentsJson: '{}', changesJson: '{}' }]) {
      await expect(edit(value)).rejects.toMatchObject({
        reason: 'INVALID_ARGUMENTS',
        message: 'approve_with_edits requires either arguments_json or changes_json.',
      });
    }
    const { approval } = await edit({ changesJson: '{"amount_usd":800}' });
    expect(approval?.executedAction?.kind.value).toMatchObject({
      argumentsJson: '{"amount_usd":800,"reason":"Paid twice.","user_id":42}',
    });
    expect(approval?.humanApproval).toMatchObject({
      comment: '',
      basis: 'approved_with_cap:800',
      decidedBy: 'dora',
    });
  });
});
